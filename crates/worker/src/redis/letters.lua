-- Dead letters, the oldest first. ARGV[2]: from which place; ARGV[3]: to which. Out: id and fields.
local letters = {}
for _, id in ipairs(redis.call('ZRANGE', dead, ARGV[2], ARGV[3])) do
  letters[#letters + 1] = {id, redis.call('HGETALL', key(id))}
end
return letters
