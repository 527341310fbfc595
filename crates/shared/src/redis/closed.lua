-- The common case, with a look and nothing written: it is closed.
local seen = redis.call('HMGET', KEYS[1], 'forced', 'open_until', 'gen')
if seen[1] == 'closed' or (seen[1] == '' and seen[2] == '0') then
  return {'closed', tonumber(seen[3]), 0}
end
