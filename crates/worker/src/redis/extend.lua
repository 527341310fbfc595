-- Prolongs a lease. ARGV[2], ARGV[3]: the token; ARGV[4]: the lease in microseconds. Out: 0 if it
-- is stale.
if not held() then
  return 0
end
redis.call('ZADD', leased, num(now + ARGV[4]), ARGV[2])
return 1
