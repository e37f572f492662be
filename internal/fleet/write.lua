-- Writes edits of settings. Each setting gets the next version. It leaves out an edit if somebody else has set one of its names since the writer read
-- the settings, or if there may be no room for it. If the store has other settings than the writer read, it writes nothing.
-- KEYS: settings, versions, version, epoch, changes.
-- ARGV: epoch and version that the writer has read, the epoch to write, milliseconds until the settings expire or 0, how many changes are kept, and
-- for how many milliseconds, how many names are over, these names, and the edits: how many settings, the last version of the store at which there
-- is certainly room for them, the change for people or '', and the names and texts of the settings.
-- Reply: the version before, and for each edit the version of its last setting, or -1. It is empty if the store has other settings.
local call = redis.call
local settings, versions, version_key, epoch_key, changes = unpack(KEYS)
local known, life, first_over = tonumber(ARGV[2]), tonumber(ARGV[4]), 8
local first_edit = first_over + ARGV[7]
local found = call('MGET', epoch_key, version_key)
local first = tonumber(found[2] or 0) or 0
if (found[1] or '') ~= ARGV[1] or first < known then return {} end

local MOST = 1000 -- names that others have set since the writer read the settings
local newer = {}
local names = first > known and call('ZRANGEBYSCORE', versions, '(' .. ARGV[2], first, 'LIMIT', 0, MOST) or {}
if #names == MOST then return {} end
for _, name in ipairs(names) do newer[name] = true end

-- Reports whether somebody else has set one of the names of an edit.
local function is_stale(from, to)
  for i = from, to, 2 do
    if newer[ARGV[i]] then return true end
  end
end

-- Sets when a key expires. If somebody else has written since the writer read the settings, it expires no earlier than before.
local function expire(key)
  if life == 0 then
    call('PERSIST', key)
  elseif first == known then
    call('PEXPIRE', key, life)
  else
    call('PEXPIRE', key, life, 'GT')
  end
end

local set, add, notes, last, reply = { 'HSET', settings }, { 'ZADD', versions }, { 'LPUSH', changes }, first, { first }

-- Adds an edit to what is written. Its settings get the versions after last.
local function write(from, to, change)
  for i = from, to, 2 do
    last = last + 1
    set[#set + 1], set[#set + 2] = ARGV[i], ARGV[i + 1]
    add[#add + 1], add[#add + 2] = last, ARGV[i]
  end
  if change ~= '' then notes[#notes + 1] = change end
end

local wrote, i = false, first_edit
while ARGV[i] do
  local from, to = i + 3, i + 2 + 2 * ARGV[i]
  if first > tonumber(ARGV[i + 1]) or is_stale(from, to) then
    reply[#reply + 1] = -1
  else
    write(from, to, ARGV[i + 2])
    wrote, reply[#reply + 1] = true, last
  end
  i = to + 1
end
if not wrote then return reply end
if last > first then
  call(unpack(set))
  call(unpack(add))
end
if #notes > 2 then
  call(unpack(notes))
  call('LTRIM', changes, 0, ARGV[5] - 1)
  call('PEXPIRE', changes, ARGV[6])
end
for k = first_over, first_edit - 1 do
  if not newer[ARGV[k]] then
    call('HDEL', settings, ARGV[k])
    call('ZREM', versions, ARGV[k])
  end
end
call('SET', version_key, last, 'KEEPTTL')
call('SET', epoch_key, ARGV[3], 'KEEPTTL')
for k = 1, 4 do expire(KEYS[k]) end
return reply
