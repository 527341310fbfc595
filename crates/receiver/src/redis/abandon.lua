-- Gives the key back, unless a response is recorded. In: fence. Out: 0 if the token is stale.
local known = redis.call('HMGET', KEYS[1], 'fence', 'status')
if known[1] ~= ARGV[1] then
  return 0
end
if not known[2] then
  redis.call('DEL', KEYS[1])
end
return 1
