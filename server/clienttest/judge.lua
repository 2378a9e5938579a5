-- Put before the text of a script, this gives it a Redis whose clock is the test's:
-- the last of ARGV is the time in microseconds. Expiries stand beside the keys they
-- belong to, under another name; all else is what the Redis that runs it does.
local real, nowUs = redis, tonumber(table.remove(ARGV))
local nowMs = math.floor(nowUs / 1000)
local redis = setmetatable({}, { __index = real })
redis.replicate_commands = function() return true end

local function expiryOf(key) return '\1expiry\1' .. key end

local function purge(key)
  local at = real.call('GET', expiryOf(key))
  if at and nowMs > tonumber(at) then real.call('DEL', key, expiryOf(key)) end
end

local function integer(text)
  local n = tonumber(text)
  if not n or n ~= math.floor(n) then error('ERR value is not an integer or out of range') end
  return n
end

local function expireAt(key, ms)
  if ms <= nowMs then real.call('DEL', key, expiryOf(key)) return end
  real.call('SET', expiryOf(key), string.format('%.0f', ms))
end

local function expireIn(key, ms)
  if ms <= 0 then error('ERR invalid expire time') end
  expireAt(key, nowMs + ms)
end

local function pttl(key)
  if real.call('EXISTS', key) == 0 then return -2 end
  local at = real.call('GET', expiryOf(key))
  return at and tonumber(at) - nowMs or -1
end

local expiring = {
  EXPIRE = function(n) return nowMs + n * 1000 end,
  PEXPIRE = function(n) return nowMs + n end,
  EXPIREAT = function(n) return n * 1000 end,
  PEXPIREAT = function(n) return n end,
}
local setting = {
  EX = function(n) return n * 1000 end,
  PX = function(n) return n end,
}

local handlers = {}

function handlers.TIME()
  local s = math.floor(nowUs / 1000000)
  return { string.format('%.0f', s), string.format('%.0f', nowUs - s * 1000000) }
end

function handlers.SET(key, value, ...)
  local words, ms, keep, plain, old = { ... }, nil, false, { key, value }, false
  local i = 1
  while i <= #words do
    local word = string.upper(tostring(words[i]))
    if setting[word] then
      ms = setting[word](integer(words[i + 1]))
      if ms <= 0 then error("ERR invalid expire time in 'set' command") end
      i = i + 1
    elseif word == 'KEEPTTL' then keep = true
    else plain[#plain + 1] = words[i] end
    i = i + 1
  end
  local done = real.call('SET', unpack(plain))
  if not done then return done end
  if not keep then real.call('DEL', expiryOf(key)) end
  if ms then expireIn(key, ms) end
  return done
end

function handlers.SETEX(key, s, value)
  local done = real.call('SET', key, value)
  expireIn(key, integer(s) * 1000)
  return done
end

function handlers.PSETEX(key, ms, value)
  local done = real.call('SET', key, value)
  expireIn(key, integer(ms))
  return done
end

function handlers.PTTL(key) return pttl(key) end

function handlers.TTL(key)
  local ms = pttl(key)
  return ms < 0 and ms or math.floor((ms + 500) / 1000)
end

function handlers.RENAME(key, to)
  local at = real.call('GET', expiryOf(key))
  local done = real.call('RENAME', key, to)
  real.call('DEL', expiryOf(key), expiryOf(to))
  if at then real.call('SET', expiryOf(to), at) end
  return done
end

function handlers.PERSIST(key) return real.call('DEL', expiryOf(key)) end

function handlers.MGET(...)
  for _, key in ipairs({ ... }) do purge(key) end
  return real.call('MGET', ...)
end

local function delete(...)
  local n = 0
  for _, key in ipairs({ ... }) do
    purge(key)
    n = n + real.call('DEL', key)
    real.call('DEL', expiryOf(key))
  end
  return n
end
handlers.DEL, handlers.UNLINK = delete, delete

for name, at in pairs(expiring) do
  handlers[name] = function(key, n)
    if real.call('EXISTS', key) == 0 then return 0 end
    expireAt(key, at(integer(n)))
    return 1
  end
end

local keyless = { TIME = true, MGET = true, DEL = true, UNLINK = true }

redis.call = function(name, key, ...)
  name = string.upper(name)
  if key and not keyless[name] then purge(key) end
  if handlers[name] then return handlers[name](key, ...) end
  if key == nil then return real.call(name) end
  local answer = real.call(name, key, ...)
  if real.call('EXISTS', key) == 0 then real.call('DEL', expiryOf(key)) end
  return answer
end
redis.pcall = redis.call
