-- Takes one report in. ARGV[3..6]: failures that open it, first and longest open time, successes
-- that close it. ARGV[7]: its generation. ARGV[8]: 'calls' with the runs, 'probe' with the number
-- and the vote, or 'opened' with the open time and what is left of it. Out: the new state and its
-- cause, or two empty texts, and the generation.
local limit, first, longest, close_after =
  tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local to, cause = '', ''

local function may_open()
  return b.forced == '' and b.open_until == 0
end

-- Failures in a row, and whether they open it; of a long run no more than can matter.
local function fail(run)
  if run == 0 then
    return false
  end
  b.failures = b.failures + math.min(run, limit)
  return b.failures >= limit and may_open()
end

local function calls(lead, middle, trail, succeeded)
  local opens = fail(lead)
  if not opens and succeeded then
    b.failures = 0
    opens = fail(middle)
    if not opens then
      b.failures = 0
      opens = fail(trail)
    end
  end
  if opens then
    b.open_for = first
    turn(now + first)
    to, cause = 'open', 'tripped'
  end
end

local function opened(open_for, left)
  if may_open() then
    b.open_for = math.min(math.max(open_for, first), longest)
    turn(now + math.min(left, b.open_for))
    to, cause = 'open', 'tripped'
  end
end

local function probe(vote)
  if vote == 'failure' then
    b.failures = b.failures + 1
    b.open_for = math.min(b.open_for * 2, longest)
    turn(now + b.open_for)
    to, cause = 'open', 'failed'
    return
  end
  let_probe()
  if vote == 'success' then
    b.failures = 0
    b.successes = b.successes + 1
    if b.successes >= close_after then
      turn(0)
      to, cause = 'closed', 'succeeded'
    end
  end
end

if tonumber(ARGV[7]) == b.gen then
  if ARGV[8] == 'calls' then
    calls(tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12] == '1')
  elseif ARGV[8] == 'opened' then
    opened(tonumber(ARGV[9]), tonumber(ARGV[10]))
  elseif tonumber(ARGV[9]) == b.probe_out then
    probe(ARGV[10])
  end
end
save()
if to ~= '' then
  redis.call('PUBLISH', ARGV[2], KEYS[1] .. ' ' .. string.format('%.0f', b.gen) .. ' ' .. to)
end
return {to, cause, b.gen}
