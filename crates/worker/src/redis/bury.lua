-- Sets a message aside. ARGV[2], ARGV[3]: the token; ARGV[4]: how many attempts were made;
-- ARGV[5]: the reason; ARGV[6]: the description. Out: 0 if it is stale.
if not held() then
  return 0
end
redis.call('ZREM', leased, ARGV[2])
redis.call('HDEL', key(ARGV[2]), 'fence')
redis.call('HSET', key(ARGV[2]), 'attempt', ARGV[4], 'died_at', num(now), 'reason', ARGV[5],
  'description', ARGV[6])
redis.call('ZADD', dead, num(now), ARGV[2])
return 1
