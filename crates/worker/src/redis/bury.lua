-- Sets a message aside. ARGV[2], ARGV[3]: the token; ARGV[4]: the reason; ARGV[5]: the description.
-- Out: 0 if it is stale.
if not held() then
  return 0
end
redis.call('ZREM', leased, ARGV[2])
redis.call('HDEL', key(ARGV[2]), 'fence')
redis.call('HSET', key(ARGV[2]), 'died_at', num(now), 'reason', ARGV[4], 'description', ARGV[5])
redis.call('ZADD', dead, num(now), ARGV[2])
return 1
