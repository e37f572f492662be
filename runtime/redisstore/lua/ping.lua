-- Tries commands on a key of their own, in ways that change nothing else, and SET in any case: that tells whether the server takes data.
-- The arguments are an expiry in milliseconds, and the commands with spaces between them. The reply is the version that the server says
-- it has, or nothing, and then the commands that fail and why.

local key, expiry, wanted = KEYS[1], ARGV[1], ' SET ' .. ARGV[2] .. ' '
local tries = {
  { 'SET', key, '', 'PXAT', expiry }, { 'GET', key }, { 'GETRANGE', key, 0, 0 }, { 'SETRANGE', key, 0, '' },
  -- If the key is there, it holds no list, set or hash, so these change nothing. If the caller's clock is behind, it has expired.
  { 'HSCAN', key, 0 }, { 'LINDEX', key, 0 }, { 'LLEN', key }, { 'LPOP', key }, { 'LRANGE', key, 0, 0 }, { 'LREM', key, 0, '' },
  { 'LSET', key, 0, '' }, { 'RPUSH', key, '' }, { 'ZADD', key, 'XX', 0, '' }, { 'ZCOUNT', key, 0, 0 }, { 'ZRANGE', key, 0, 0 },
  { 'ZREM', key, '' }, { 'ZREMRANGEBYSCORE', key, 0, 0 }, { 'ZSCORE', key, '' }, { 'TIME' },
  { 'PEXPIREAT', key, expiry }, { 'DEL', key },
}

local reply = { redis.REDIS_VERSION or '' }
for _, try in ipairs(tries) do
  local got = string.find(wanted, ' ' .. try[1] .. ' ', 1, true) and redis.pcall(unpack(try))
  local fault = type(got) == 'table' and got.err
  if fault and not string.find(fault, 'WRONGTYPE') and not string.find(fault, 'no such key') then
    reply[#reply + 1] = try[1]
    reply[#reply + 1] = fault
  end
end
return reply
