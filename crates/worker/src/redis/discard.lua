-- Removes a dead letter. ARGV[2]: its id. Out: 0 if there is none.
if redis.call('ZREM', dead, ARGV[2]) == 0 then
  return 0
end
redis.call('DEL', key(ARGV[2]))
return 1
