-- Sliding log in a sorted set. KEYS[1]: the log. ARGV: window in seconds, max.
-- Answers {allowed, remaining, retry after in ms}.
local window, max = ARGV[1] * 1000000, tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local used = redis.call('ZCARD', KEYS[1])
if used >= max then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return {0, 0, math.ceil((oldest[2] + window - now) / 1000)}
end

-- The count makes members of one microsecond differ.
redis.call('ZADD', KEYS[1], now, time[1] .. ':' .. time[2] .. ':' .. used)
redis.call('PEXPIRE', KEYS[1], ARGV[1] * 1000)
return {1, max - used - 1, 0}
