-- Whether a call may go. ARGV[3]: the lease of a probe; ARGV[4]: who asks.
-- Out: what, the generation, the number of the probe or what is left to wait.
local what, number = 'closed', 0
if b.forced == 'open' then
  what = 'forced'
elseif b.forced == '' and b.open_until ~= 0 then
  local out = b.probe_out ~= 0
  -- Set back by more than the lease; a smaller step is no reason for a second probe.
  local back = now + (b.probe_until - b.probe_sent) < b.probe_sent
  local lapsed = now >= b.probe_until or back
  if out and not lapsed then
    what, number = 'out', b.probe_until - now
  elseif out or b.successes > 0 or now >= b.open_until or now + b.open_for < b.since then
    b.probes = b.probes + 1
    b.probe_out = b.probes
    b.probe_sent = now
    b.probe_until = now + ARGV[3]
    redis.call('HSET', KEYS[1], 'prober', ARGV[4])
    what, number = 'probe', b.probes
  else
    what, number = 'open', b.open_until - now
  end
end
save()
return {what, b.gen, number}
