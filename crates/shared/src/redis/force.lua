-- Sets the state by hand, or with an empty ARGV[3] gives it back to the rules.
b.forced = ARGV[3]
b.since = now
save()
redis.call('PUBLISH', ARGV[2], KEYS[1] .. ' ' .. string.format('%.0f', b.gen) .. ' forced')
