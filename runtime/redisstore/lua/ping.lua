-- Tries the commands of the script on a key of their own, in ways that change nothing else. The reply is the version that the server
-- says it has, or nothing, and then the commands that it does not permit and why. The argument is an expiry in milliseconds.

local key, expiry = KEYS[1], ARGV[1]
local tries = {
  { 'SET', key, '', 'PXAT', expiry }, { 'GET', key }, { 'GETRANGE', key, 0, 0 }, { 'SETRANGE', key, 0, '' },
  -- The key holds no list and no sorted set, so these change nothing.
  { 'LINDEX', key, 0 }, { 'LLEN', key }, { 'LPOP', key }, { 'LRANGE', key, 0, 0 }, { 'LREM', key, 0, '' }, { 'LSET', key, 0, '' },
  { 'RPUSH', key, '' }, { 'ZADD', key, 0, '' }, { 'ZCOUNT', key, 0, 0 }, { 'ZRANGE', key, 0, 0 }, { 'ZREM', key, '' },
  { 'ZREMRANGEBYSCORE', key, 0, 0 }, { 'ZSCORE', key, '' }, { 'TIME' },
  { 'PEXPIREAT', key, expiry }, { 'DEL', key },
}

local reply = { redis.REDIS_VERSION or '' }
for _, try in ipairs(tries) do
  local got = redis.pcall(unpack(try))
  local fault = type(got) == 'table' and got.err
  if fault and not string.find(fault, 'WRONGTYPE') then
    reply[#reply + 1] = try[1]
    reply[#reply + 1] = fault
  end
end
return reply
