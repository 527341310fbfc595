-- What all steps share. KEYS: ready (list of ids), scheduled, leased, dead (sorted sets of ids by
-- microseconds of the server's clock), fence (the last number given). ARGV[1]: what the key of a
-- message begins with. All keys have one hash tag, so that they are on one node of a cluster.
local ready, scheduled, leased, dead, fences = unpack(KEYS)
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function key(id)
  return ARGV[1] .. id
end

-- Numbers of this size lose digits when Lua turns them into text by itself.
local function num(n)
  return string.format('%.0f', n)
end

-- Larger than every one before, also when the last one was lost with the server's memory.
local function fence()
  local last = tonumber(redis.call('GET', fences) or '0')
  local next = math.max(now, last + 1)
  redis.call('SET', fences, num(next))
  return num(next)
end

-- Whether the token of ARGV[2] (id) and ARGV[3] (its number) holds its message.
local function held()
  return redis.call('HGET', key(ARGV[2]), 'fence') == ARGV[3]
end
