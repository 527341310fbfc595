-- Takes messages. ARGV[2]: the lease in microseconds; ARGV[3]: how many at most.
-- Out: the time, how long until the next one falls due or lapses (-1: none), and id and fields of
-- each taken.
local step = 128

-- A lease that has lapsed, and a time that has come, make a message ready.
for _, set in ipairs({leased, scheduled}) do
  local due = redis.call('ZRANGEBYSCORE', set, '-inf', num(now), 'LIMIT', 0, step)
  for _, id in ipairs(due) do
    redis.call('ZREM', set, id)
    redis.call('HDEL', key(id), 'fence')
    redis.call('RPUSH', ready, id)
  end
end

local taken = {}
while #taken < tonumber(ARGV[3]) do
  local id = redis.call('LPOP', ready)
  if not id then
    break
  end
  if redis.call('EXISTS', key(id)) == 1 then
    redis.call('HINCRBY', key(id), 'attempt', 1)
    if (redis.call('HGET', key(id), 'begun') or '') == '' then
      redis.call('HSET', key(id), 'begun', num(now))
    end
    redis.call('HSET', key(id), 'fence', fence())
    redis.call('ZADD', leased, num(now + ARGV[2]), id)
    taken[#taken + 1] = {id, redis.call('HGETALL', key(id))}
  end
end

local wait = -1
for _, set in ipairs({leased, scheduled}) do
  local first = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  if first[2] then
    local left = math.max(0, tonumber(first[2]) - now)
    wait = wait < 0 and left or math.min(wait, left)
  end
end
return {now, wait, taken}
