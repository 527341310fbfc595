-- Records the response. In: fence, expiry in milliseconds, status, headers, body.
-- Out: 0 if the token is stale.
local known = redis.call('HMGET', KEYS[1], 'fence', 'status')
if known[1] ~= ARGV[1] then
  return 0
end
if not known[2] then
  redis.call('HSET', KEYS[1], 'status', ARGV[3], 'headers', ARGV[4], 'body', ARGV[5])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
