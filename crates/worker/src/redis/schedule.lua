-- Gives a message back. ARGV[2], ARGV[3]: the token; ARGV[4]: when it is due; ARGV[5]: attempts so
-- far; ARGV[6..8]: its history: begun (or empty), last wait, last error. Out: 0 if it is stale.
if not held() then
  return 0
end
redis.call('ZREM', leased, ARGV[2])
redis.call('HDEL', key(ARGV[2]), 'fence')
redis.call('HSET', key(ARGV[2]), 'attempt', ARGV[5], 'begun', ARGV[6], 'last_wait', ARGV[7],
  'last_error', ARGV[8])
if tonumber(ARGV[4]) <= now then
  redis.call('RPUSH', ready, ARGV[2])
else
  redis.call('ZADD', scheduled, ARGV[4], ARGV[2])
end
return 1
