-- A sliding window for large costs: it has one entry for each call, not one for each permit. Entries with a future time belong to waiting
-- calls, and already count. a is the period.
--
-- While fewer than MOST_EXACT entries count, the window is exact. Beyond that, charges within the same 2,048th of the period share an entry
-- at the end of that span.
--
-- The state is a string: LAYOUT; the permits of all entries; a time before which no entry is; the time of the newest; the permits of the
-- newest block; the index of the oldest entry, the index after the newest, and how many fit; the permits of each earlier block of BLOCK
-- entries; and the entries, each a time and permits. What is before the oldest no longer counts, but is still part of its block's permits.
local amounts = {}
local states = use('states')
local byte, floor, ceil, max, min, huge = string.byte, math.floor, math.ceil, math.max, math.min, math.huge

local HEAD_FORMAT, HEAD_SIZE, ENTRY_SIZE = '<ddddHHH', 39, 12 -- bytes
local BLOCK, FEW = 64, 8 -- entries
local rep = string.rep

-- Computes what is the same for all subjects: the 2,048th of the period, and the length of a step, about an eighth of it. Only the first
-- charge in each step sets the expiry.
function amounts.prepare(c)
  c.share, c.step = floor(c.a / MOST_EXACT) + 1, floor(c.a / 8) + 1
end

-- Returns the size of a state in which so many entries fit.
local function size_of(fit) return HEAD_SIZE + 8 * ceil(fit / BLOCK) + ENTRY_SIZE * fit end

-- Returns where the permits of an entry's block and where the entry are in the state.
local function block_at(i) return HEAD_SIZE + 8 * floor(i / BLOCK) end
local function entry_at(c, i) return size_of(c.fit) - ENTRY_SIZE * (c.fit - i) end

local function bytes(c, from, size) return call('GETRANGE', c.key, from, from + size - 1) end

-- Loads the numbers before the blocks.
local function load(c, now)
  c.now, c.total, c.since, c.newest, c.open, c.oldest, c.stop, c.fit = now, 0, 0, 0, 0, 0, 0, 0
  local head = bytes(c, 0, HEAD_SIZE)
  if head == '' and not call('GET', c.key) then return end
  local layout = byte(head) or 0
  if layout > LAYOUT and layout < LAYOUTS then states.fail_later_layout(layout, LAYOUT) end
  if layout == LAYOUT and #head == HEAD_SIZE then
    local total, since, newest, open, oldest, stop, fit = parse(HEAD_FORMAT, head, 2)
    local sound = states.valid(total) and states.valid(since) and states.valid(newest) and states.valid(open) and newest <= now + HORIZON
    if sound and oldest < stop and stop <= fit and call('STRLEN', c.key) == size_of(fit) then
      c.total, c.since, c.newest, c.open, c.oldest, c.stop, c.fit = total, since, newest, open, oldest, stop, fit
      return
    end
  end
  states.damage(c)
end

local function head_of(c) return pack(HEAD_FORMAT, c.total, c.since, c.newest, c.open, c.oldest, c.stop, c.fit) end

local function write_head(c) call('SETRANGE', c.key, 1, head_of(c)) end

-- Returns the times and the permits of some entries, from index i on and before index j, in turns.
local function read(c, i, j)
  return { parse('<' .. rep('dI4', j - i), bytes(c, entry_at(c, i), ENTRY_SIZE * (j - i))) }
end

-- Reports whether an entry is in the newest block, whose permits are in the head.
local function is_open(c, i) return i - i % BLOCK + BLOCK >= c.stop end

-- Returns the permits of the block of an entry, which is before the newest block.
local function earlier_permits(c, i) return (parse('<d', bytes(c, block_at(i), 8))) end

-- Returns the permits of each block but the newest, from that of the oldest entry on.
local function read_blocks(c)
  local first, stop = floor(c.oldest / BLOCK), floor((c.stop - 1) / BLOCK)
  return first, { parse('<' .. rep('d', stop - first), bytes(c, block_at(c.oldest), 8 * (stop - first))) }
end

-- Adds permits to the block of an entry.
local function add_to_block(c, i, n)
  if is_open(c, i) then
    c.open = c.open + n
  else
    call('SETRANGE', c.key, block_at(i), pack('<d', earlier_permits(c, i) + n))
  end
end

-- Adds permits to an entry that has some.
local function add_to_entry(c, i, permits, n)
  call('SETRANGE', c.key, entry_at(c, i) + 8, pack('<I4', permits + n))
  add_to_block(c, i, n)
  c.total = c.total + n
end

-- Walks from the oldest entry to the first that is later than a time or that has the n-th permit. Returns the index of that entry, its time
-- and permits, and how many of the n permits are not before it. If there is no such entry, it returns the index after the newest one, and
-- neither a time nor permits.
local function walk(c, n, time)
  local i, first, blocks = c.oldest, nil, nil
  while i < c.stop do
    local whole = i % BLOCK == 0 and i + BLOCK <= c.stop and (time == huge or read(c, i + BLOCK - 1, i + BLOCK)[1] <= time)
    if whole and not blocks then first, blocks = read_blocks(c) end
    local block = whole and (is_open(c, i) and c.open or blocks[i / BLOCK - first + 1])
    if block and block < n then
      n, i = n - block, i + BLOCK
    else
      local list = read(c, i, min(c.stop, i - i % FEW + FEW))
      for k = 2, #list, 2 do
        if list[k] >= n or list[k - 1] > time then return i, list[k - 1], list[k], n end
        n, i = n - list[k], i + 1
      end
    end
  end
  return i, nil, nil, n
end

function amounts.check(c, now)
  load(c, now)
  c.excess = false -- of the last walk; nothing is charged between walks for it
  return amounts.earliest(c, c.cost, now, now)
end

function amounts.earliest(c, n, now, from)
  local excess = c.total + n - c.limit
  if excess <= 0 then return from end
  if c.excess ~= excess then
    local _, time = walk(c, excess, huge)
    c.excess, c.leaves = excess, (time or c.newest) + c.a
  end
  return max(from, c.leaves)
end

-- Returns the index of the oldest entry in the window, its time, and the permits of the entries before it that are still in the total.
local function gone(c)
  local horizon = c.now - c.a
  if c.since > horizon then return c.oldest, c.since, 0 end
  if c.newest <= horizon then return c.stop, 0, c.total end
  local i, time, _, left = walk(c, c.total + 1, horizon)
  return i, time or 0, c.total + 1 - left
end

function amounts.room(c, now)
  local _, _, permits = gone(c)
  return c.limit - c.total + permits
end

function amounts.full(c, now) return max(now, c.newest + c.a) end

-- Usually the oldest entry has permits enough.
function amounts.more(c, room, now)
  local excess = c.total + room + 1 - c.limit
  if room >= c.limit or excess <= 0 then return now end
  local time, permits = unpack(read(c, c.oldest, c.oldest + 1))
  if excess <= permits then return max(now, time + c.a) end
  c.excess = false
  return amounts.earliest(c, room + 1, now, now)
end

-- Is false if there are too many entries in the window.
function amounts.reserves(c, now, at)
  return c.stop - gone(c) < MOST_PLACES and amounts.earliest(c, c.cost, now, at) == at
end

-- Returns the index of the first entry that is not before a time, and the entry's time and permits. If there is none, it returns the index
-- after the newest entry.
local function search(c, at)
  local i, j = c.oldest, c.stop
  while j - i > FEW do
    local middle = floor((i + j) / 2)
    if read(c, middle, middle + 1)[1] < at then i = middle + 1 else j = middle + 1 end
  end
  local list = read(c, i, j)
  for k = 2, #list, 2 do
    if list[k - 1] >= at then return i, list[k - 1], list[k] end
    i = i + 1
  end
  return i
end

-- Writes the state anew without what no longer counts, with an entry before index i.
local function insert(c, i, time, permits)
  local before = c.stop > c.oldest and bytes(c, entry_at(c, c.oldest), ENTRY_SIZE * (i - c.oldest)) or ''
  local after = c.stop > i and bytes(c, entry_at(c, i), ENTRY_SIZE * (c.stop - i)) or ''
  local text = before .. pack('<dI4', time, permits) .. after
  local count, blocks = #text / ENTRY_SIZE, {}
  for first = 0, count - 1, BLOCK do
    local size = min(BLOCK, count - first)
    local list = { parse('<' .. rep('xxxxxxxxI4', size), text, ENTRY_SIZE * first + 1) }
    c.open = 0
    for k = 1, size do c.open = c.open + list[k] end
    table.insert(blocks, pack('<d', c.open))
  end
  c.since, c.oldest, c.stop, c.fit = min(c.since, time), 0, count, count + max(8, min(floor(count / 2), 1024))
  local unused = 8 * (ceil(c.fit / BLOCK) - #blocks)
  local room = rep('\0', ENTRY_SIZE * (c.fit - count))
  call('SET', c.key, HEAD .. head_of(c) .. table.concat(blocks) .. rep('\0', unused) .. text .. room, 'KEEPTTL')
end

-- Adds an entry after the newest one.
local function append(c, time, n)
  if c.stop == c.fit then return insert(c, c.stop, time, n) end
  local i = c.stop
  if i % BLOCK == 0 then
    call('SETRANGE', c.key, block_at(i - 1), pack('<d', c.open))
    c.open = 0
  end
  c.stop, c.open = i + 1, c.open + n
  call('SETRANGE', c.key, entry_at(c, i), pack('<dI4', time, n))
  write_head(c)
end

-- Charges n permits for a time after that of the newest entry.
local function charge_last(c, n, at)
  local before, began = c.newest, at - at % c.step
  c.newest, c.total = at, c.total + n
  append(c, at, n)
  if before < began then states.expire(c.key, began + c.step + c.a) end
end

-- Charges n permits for a time that is not after that of the newest entry.
local function charge_before(c, n, at)
  local i, time, permits = search(c, at)
  if time == at then
    add_to_entry(c, i, permits, n)
    return write_head(c)
  end
  c.total = c.total + n
  insert(c, i, at, n)
end

-- Removes the oldest permits, so that at most a given number is left.
local function trim(c, left)
  if c.total <= left then return end
  local i, _, permits, n = walk(c, c.total - left, huge)
  if n < permits then
    add_to_entry(c, i, permits, -n)
  else
    i = i + 1
  end
  c.oldest, c.total = i, left
  write_head(c)
end

-- Keeps at most MAX_AMOUNTS permits, the newest ones, as the costs of triggers and settlements have no bound. They may be more than the limit: other
-- programs may have a higher one, and a settlement may be given back.
function amounts.commit(c, n, now, at)
  n = min(n, MAX_AMOUNTS)
  local i, time, permits = gone(c)
  c.oldest, c.since, c.total = i, time, c.total - permits
  if i == c.stop then c.oldest, c.stop, c.fit, c.newest, c.since = 0, 0, 0, 0, at end
  if c.stop - c.oldest >= MOST_EXACT then
    local stored = at - at % c.share + c.share - 1
    if stored > at then states.record(c, stored) end
    at = stored
  end
  if at > c.newest then charge_last(c, n, at) else charge_before(c, n, at) end
  trim(c, MAX_AMOUNTS)
end

function amounts.charges(c, _, tell)
  local stop = c.stop - c.wait
  for i = max(c.oldest, stop - MOST_TOLD), stop - 1, BLOCK do
    local list = read(c, i, min(stop, i + BLOCK))
    for k = 2, #list, 2 do tell(list[k - 1], list[k]) end
  end
end

-- Removes the newest entries that have no permits.
local function drop_empty(c)
  while c.stop > c.oldest do
    local from = max(c.oldest, c.stop - 1 - (c.stop - 1) % FEW)
    local list = read(c, from, c.stop)
    for k = 2 * (c.stop - from), 2, -2 do
      if list[k] > 0 then
        c.newest, c.stop = list[k - 1], from + k / 2
        return write_head(c)
      end
    end
    c.stop = from
    if c.stop % BLOCK == 0 and c.stop > c.oldest then c.open = earlier_permits(c, c.stop - 1) end
  end
  call('DEL', c.key)
end

function amounts.give_back(c, n, now, at)
  local i, time, permits = search(c, at)
  if at <= now - c.a or time ~= at then return end
  add_to_entry(c, i, permits, -min(n, permits))
  drop_empty(c)
end

-- Changes a block of entries at a time.
function amounts.give(c, n, now)
  local first, stop = gone(c), search(c, now + 1)
  while n > 0 and stop > first do
    local from = max(first, stop - 1 - (stop - 1) % BLOCK)
    local list, given = read(c, from, stop), 0
    for k = 2 * (stop - from), 2, -2 do
      local part = min(n - given, list[k])
      list[k], given = list[k] - part, given + part
    end
    call('SETRANGE', c.key, entry_at(c, from), pack('<' .. rep('dI4', stop - from), unpack(list, 1, 2 * (stop - from))))
    add_to_block(c, from, -given)
    c.total, n, stop = c.total - given, n - given, from
  end
  drop_empty(c)
end
