-- The common case, with one look and nothing written: every call may go. Out: only the generation.
local free = redis.call('HGET', KEYS[1], 'free')
if free and free ~= '' then
  return tonumber(free)
end
