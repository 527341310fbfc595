-- Looks. Out: the state, the generation, what it is forced to, what is left of the open time, the
-- failures in a row, whether it has never opened since its birth.
local phase = 'closed'
if b.forced == 'open' then
  phase = 'open'
elseif b.forced == '' and b.open_until ~= 0 then
  phase = b.probe_out ~= 0 and 'half_open' or 'open'
end
save()
return {phase, b.gen, b.forced, math.max(0, b.open_until - now), b.failures,
  b.gen == b.born and 1 or 0}
