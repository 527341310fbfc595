-- Removes a message. ARGV[2], ARGV[3]: the token. Out: 0 if it is stale.
if not held() then
  return 0
end
redis.call('ZREM', leased, ARGV[2])
redis.call('DEL', key(ARGV[2]))
return 1
