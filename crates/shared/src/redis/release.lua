-- Gives a probe back that is still out. ARGV[3]: who was let out as it. Out: whether it was.
local held = b.probe_out ~= 0 and redis.call('HGET', KEYS[1], 'prober') == ARGV[3]
if held then
  let_probe()
  save()
end
return held and 1 or 0
