-- How many are ready, scheduled, leased, dead.
return {redis.call('LLEN', ready), redis.call('ZCARD', scheduled), redis.call('ZCARD', leased),
  redis.call('ZCARD', dead)}
