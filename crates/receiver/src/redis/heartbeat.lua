-- Prolongs the lease. In: fence, lease in microseconds, the same in milliseconds.
-- Out: 0 if the token is stale.
local known = redis.call('HMGET', KEYS[1], 'fence', 'status')
if known[1] ~= ARGV[1] then
  return 0
end
if not known[2] then
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  redis.call('HSET', KEYS[1], 'until', string.format('%.0f', now + ARGV[2]))
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  end
end
return 1
