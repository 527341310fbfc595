-- Makes a dead letter due again, as new. ARGV[2]: its id. Out: 0 if there is none.
if redis.call('ZREM', dead, ARGV[2]) == 0 then
  return 0
end
redis.call('HDEL', key(ARGV[2]), 'begun', 'last_wait', 'last_error', 'died_at', 'reason',
  'description')
redis.call('HSET', key(ARGV[2]), 'attempt', 0)
redis.call('RPUSH', ready, ARGV[2])
return 1
