-- Puts a message in. ARGV[2]: its id, or empty for one of ours; ARGV[3]: for how many microseconds
-- it is held back; then its fields, names and values in turn. Out: its id, empty if it is there.
local id = ARGV[2]
if id == '' then
  id = fence()
end
if redis.call('EXISTS', key(id)) == 1 then
  return ''
end
redis.call('HSET', key(id), 'enqueued_at', num(now), 'attempt', 0)
for at = 4, #ARGV, 2 do
  redis.call('HSET', key(id), ARGV[at], ARGV[at + 1])
end
if tonumber(ARGV[3]) == 0 then
  redis.call('RPUSH', ready, id)
else
  redis.call('ZADD', scheduled, num(now + ARGV[3]), id)
end
return id
