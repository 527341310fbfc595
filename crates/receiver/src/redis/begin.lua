-- Takes the key, or says why not.
-- In: fingerprint, lease in microseconds, expiry in milliseconds, whether a lapsed lease reruns.
-- Out: what, a number, and for a finished record its headers and body.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local known = redis.call('HMGET', KEYS[1], 'fingerprint', 'fence', 'until', 'status')
local fence = now
if known[1] then
  if known[1] ~= ARGV[1] then
    return {'mismatch', 0, '', ''}
  end
  if known[4] then
    local response = redis.call('HMGET', KEYS[1], 'headers', 'body')
    return {'done', tonumber(known[4]), response[1], response[2]}
  end
  local left = tonumber(known[3]) - now
  if left > 0 then
    return {'running', left, '', ''}
  end
  if ARGV[4] == '0' then
    return {'indeterminate', 0, '', ''}
  end
  fence = math.max(now, tonumber(known[2]) + 1)
end
redis.call('HSET', KEYS[1], 'fingerprint', ARGV[1], 'fence', string.format('%.0f', fence),
  'until', string.format('%.0f', now + ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {'started', fence, '', ''}
