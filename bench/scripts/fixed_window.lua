-- Fixed window from the first request. KEYS[1]: the counter. ARGV: window in seconds,
-- max, cost. Answers {allowed, remaining, retry after in ms}.
local max, cost = tonumber(ARGV[2]), tonumber(ARGV[3])
local count = redis.call('INCRBY', KEYS[1], cost)
if count == cost then
  redis.call('PEXPIRE', KEYS[1], ARGV[1] * 1000)
end
if count > max then
  return {0, 0, redis.call('PTTL', KEYS[1])}
end
return {1, max - count, 0}
