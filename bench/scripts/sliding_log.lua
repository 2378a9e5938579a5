-- Sliding log in a sorted set. KEYS[1]: the log. ARGV: window in seconds, max, cost.
-- Answers {allowed, remaining, retry after in ms}.
local window, max, cost = ARGV[1] * 1000000, tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local used = redis.call('ZCARD', KEYS[1])
if used + cost > max then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return {0, 0, math.ceil(((oldest[2] or now) + window - now) / 1000)}
end

-- The count makes members of one microsecond differ.
for unit = used, used + cost - 1 do
  redis.call('ZADD', KEYS[1], now, time[1] .. ':' .. time[2] .. ':' .. unit)
end
redis.call('PEXPIRE', KEYS[1], ARGV[1] * 1000)
return {1, max - used - cost, 0}
