-- Reads the breaker in KEYS[1]; one that is not there is born closed. ARGV[1]: its expiry in
-- milliseconds. All times are microseconds of the server's clock. ARGV[2]: where changes are told.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local names = {'gen', 'born', 'failures', 'successes', 'open_until', 'open_for', 'probes',
  'probe_out', 'probe_sent', 'probe_until', 'since'}
local known = redis.call('HMGET', KEYS[1], 'forced', unpack(names))
local b = {forced = known[1] or ''}
for at, name in ipairs(names) do
  b[name] = tonumber(known[at + 1] or '0')
end
if b.gen == 0 then
  -- No two lives of one key share a number.
  b.gen = math.floor(now / 1000)
  b.born = b.gen
  b.since = now
end

local function save()
  -- The generation while every call may go: what most calls ask for, in one field.
  local free = ''
  if b.forced == 'closed' or (b.forced == '' and b.open_until == 0) then
    free = string.format('%.0f', b.gen)
  end
  local pairs_ = {'forced', b.forced, 'free', free}
  for _, name in ipairs(names) do
    pairs_[#pairs_ + 1] = name
    pairs_[#pairs_ + 1] = string.format('%.0f', b[name])
  end
  redis.call('HSET', KEYS[1], unpack(pairs_))
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end

-- The probe that was out proved nothing: the next call probes.
local function let_probe()
  b.probe_out = 0
  b.open_until = math.min(b.open_until, now)
end

-- Begins a generation; 0 for closed.
local function turn(open_until)
  b.open_until = open_until
  b.gen = b.gen + 1
  b.probe_out = 0
  b.successes = 0
  b.since = now
end
