-- A sliding window of constant size. It counts the permits in each slice of time, including the slice that is only partly in the window.
-- The state is a string: LAYOUT, the number of the newest slice, the permits of all slices, the permits of the newest slice, and a ring
-- with the permits of each slice. The ring has 0 in the place of the newest slice. a is the length of a slice, and b is how many slices make
-- a window.
--
-- A ring of more than BLOCK slices has the layout SUMS: the sums of its blocks come before the ring. A block has BLOCK slices, and the last
-- block has the rest. So a decision reads at most three blocks and the sums.
local sliding_counter = {
  counts_running = false, load = false, prepare = false, check = false, commit = false, make_others = false,
}

local SUMS = 2
local BLOCK = 100
local STEP = 1000 -- how many slices a command writes; Lua takes longer for one text of 80 kB than for ten of 8 kB
local NUMBERS = 25 -- bytes before the sums

-- Computes what is the same for all subjects: the slices of the ring, how many sums there are, how many bytes are before the ring, the index
-- of the last of them, and the layout.
function sliding_counter.prepare(c)
  c.slots = c.b + 1
  c.blocks = c.slots > BLOCK and math.ceil(c.slots / BLOCK) or 0
  c.head = NUMBERS + 8 * c.blocks
  c.head_end = string.format('%d', c.head - 1)
  c.layout = c.blocks > 0 and SUMS or LAYOUT
end

-- Usually the newest slice is the present one, and the claim fits. Then the numbers before the ring are all that a call needs.
function sliding_counter.check(c, now)
  local head, present = call('GETRANGE', c.key, '0', c.head_end), math.floor(now / c.a)
  if #head == c.head then
    local layout, newest, total, count = parse('<Bddd', head)
    local sound = layout == c.layout and total % 1 == 0 and count % 1 == 0 and 0 <= count and count <= total
    if sound and newest == present and total + c.cost <= c.limit then
      c.state, c.sums = nil, string.sub(head, NUMBERS + 1)
      c.present, c.newest, c.total, c.count = present, present, total, count
      return now
    end
  end
  complete(sliding_counter).load_any(c, now, head)
  return sliding_counter.earliest(c, c.cost, now, now)
end

function sliding_counter.write(c)
  call('SETRANGE', c.key, '0', pack('<Bddd', c.layout, c.present, c.total, c.count) .. c.sums)
end

function sliding_counter.commit(c, n, now)
  if c.newest ~= c.present or c.state then complete(sliding_counter).move(c) end
  n = math.min(n, MOST_USED - c.total)
  c.total, c.count = c.total + n, c.count + n
  sliding_counter.write(c)
end

-- What follows is made when a call first uses it.

local floor, max, min = math.floor, math.max, math.min

-- Returns some bytes of the state. A state of an earlier layout is kept in the claim: see load_numbers.
local function part(c, first, last)
  if c.state then return string.sub(c.state, first + 1, last + 1) end
  return call('GETRANGE', c.key, first, last)
end

-- Returns the last slot of the block of a slot. Without sums, the whole ring is a block.
local function end_of_block(c, slot)
  return c.blocks == 0 and c.b or min(c.b, slot - slot % BLOCK + BLOCK - 1)
end

local function sum(c, slot) return (parse('<d', c.sums, 8 * floor(slot / BLOCK) + 1)) end

-- Subtracts the permits of some slices from n, one slice after the other, and begins with the oldest. When nothing of n is left, it
-- stops. Returns what is left of n, and the slice at which it stopped.
local function subtract(c, from, to, n)
  while from <= to do
    local slot = from % c.slots
    local stop = end_of_block(c, slot)
    local whole = c.blocks > 0 and slot % BLOCK == 0 and from + stop - slot <= to
    stop = min(stop, slot + to - from)
    if whole and sum(c, slot) < n then
      n = n - sum(c, slot)
    else
      local permits = part(c, c.head + 8 * slot, c.head + 8 * stop + 7)
      for i = 1, #permits, 8 do
        n = n - parse('<d', permits, i)
        if n <= 0 then return n, from + (i - 1) / 8 end
      end
    end
    from = from + stop - slot + 1
  end
  return n
end

function sliding_counter.earliest(c, n, now, from)
  local excess, slice = c.total + n - c.limit, nil
  if excess <= 0 or excess > c.total then return from end
  if excess <= c.total - c.count then slice = select(2, subtract(c, c.present - c.b, c.newest - 1, excess)) end
  return max(from, ((slice or c.newest) + c.slots) * c.a)
end

function sliding_counter.full(c, now) return sliding_counter.earliest(c, c.limit, now, now) end

function sliding_counter.more(c, room, now)
  return room < c.limit and sliding_counter.earliest(c, room + 1, now, now) or now
end

function sliding_counter.room(c, now) return c.limit - c.total end

-- What follows is made when a call first uses it.

local states = use('states')
local byte, char, ceil = string.byte, string.char, math.ceil
local write = sliding_counter.write

sliding_counter.reserves = states.at_once

-- Replaces the sums of the block of a slot and of the blocks after it.
local function set_sums(c, slot, sums)
  local before = 8 * floor(slot / BLOCK)
  c.sums = string.sub(c.sums, 1, before) .. sums .. string.sub(c.sums, before + #sums + 1)
end

-- Returns n times the number 0. string.rep copies byte by byte, so it takes longer.
local function zeros(n)
  local text = '\0\0\0\0\0\0\0\0'
  while #text < 8 * n do text = text .. text end
  return string.sub(text, 1, 8 * n)
end

-- Returns a state of the layout SUMS, made of one without sums.
local function with_sums(c, state)
  local sums = {}
  for first = NUMBERS, #state - 1, 8 * BLOCK do
    local n = 0
    for i = first, min(first + 8 * BLOCK, #state) - 1, 8 do n = n + parse('<d', state, i + 1) end
    table.insert(sums, pack('<d', n))
  end
  return char(SUMS) .. string.sub(state, 2, NUMBERS) .. table.concat(sums) .. string.sub(state, NUMBERS + 1)
end

-- Returns the first three numbers, or nothing. It keeps a state of an earlier layout in the claim, since the next change writes all of it.
local function load_numbers(c, now, head)
  c.state = nil
  if byte(head) ~= c.layout then
    local state = call('GET', c.key)
    state = state and states.current(c, state, 8)
    if not state then return end
    if #state == NUMBERS + 8 * c.slots then c.state = c.blocks > 0 and with_sums(c, state) or state end
    head = c.state or ''
  end
  if #head >= c.head then
    local newest, total, count = parse('<ddd', head, 2)
    c.sums = c.blocks > 0 and string.sub(head, NUMBERS + 1, c.head) or ''
    if states.valid(newest) and states.valid(total) and states.valid(count) and newest * c.a <= now + HORIZON then return newest, total, count end
  end
  states.damage(c)
end

-- Loads the state as it is now: the number of the present slice, the permits that count now, and those of the newest slice. If the clock
-- was set back, the newest slice stays the present one. If no slice of the ring counts, newest is nil.
function sliding_counter.load_any(c, now, head)
  local newest, total, count = load_numbers(c, now, head)
  c.present = max(floor(now / c.a), newest or 0)
  c.newest, c.total, c.count = nil, 0, 0
  if not newest or c.present - newest > c.b then return end
  if c.present > newest then total = subtract(c, newest - c.b, c.present - c.slots, total) end
  c.newest, c.total, c.count = newest, total, count
end

-- Writes the permits of the newest slice to the ring, and clears the slices up to the present one.
local function clear(c)
  local from = c.newest
  while from <= c.present do
    local slot = from % c.slots
    local n = min(STEP, c.present - from + 1, c.slots - slot)
    call('SETRANGE', c.key, c.head + 8 * slot, from == c.newest and pack('<d', c.count) .. zeros(n - 1) or zeros(n))
    from = from + n
  end
end

-- Does the same to the sums. The ring must still be as it was.
local function clear_sums(c)
  local slot = c.newest % c.slots
  set_sums(c, slot, pack('<d', sum(c, slot) + c.count))
  local from = c.newest + 1
  while from <= c.present do
    slot = from % c.slots
    local to = min(c.present, from + c.b - slot) -- at most to the end of the ring, where the last block may be shorter
    local whole = slot + to - from == c.b and ceil((to - from + 1) / BLOCK) or floor((to - from + 1) / BLOCK)
    if slot % BLOCK == 0 and whole > 0 then
      set_sums(c, slot, zeros(whole))
      from = min(to + 1, from + BLOCK * whole)
    else
      to = min(to, from + end_of_block(c, slot) - slot)
      set_sums(c, slot, pack('<d', (subtract(c, from, to, sum(c, slot)))))
      from = to + 1
    end
  end
end

-- Makes the present slice the newest one. If no state counts, it first makes an empty one. It first converts a state of an earlier layout.
function sliding_counter.move(c)
  local moves = c.newest and c.newest < c.present
  if moves and c.blocks > 0 then clear_sums(c) end
  if not c.newest then
    c.sums = zeros(c.blocks)
    call('DEL', c.key)
    call('SETRANGE', c.key, c.head + 8 * c.b, zeros(1)) -- Redis writes zeros before it; a text that grows would take twice the memory
  elseif c.state then
    call('SET', c.key, c.state, 'KEEPTTL')
  end
  c.state = nil
  if c.newest == c.present then return end
  if moves then clear(c) end
  c.newest, c.count = c.present, 0
  states.expire(c.key, (c.present + c.slots) * c.a)
end

function sliding_counter.give_back(c, n, now, at)
  local slice = floor(at / c.a)
  if c.total == 0 or slice < c.present - c.b or slice > c.present then return end
  sliding_counter.move(c)
  if slice == c.present then
    n = min(n, c.count) -- after a reset there may be fewer
    c.count = c.count - n
  else
    local slot = slice % c.slots
    local first = c.head + 8 * slot
    local kept = parse('<d', part(c, first, first + 7))
    n = min(n, kept)
    call('SETRANGE', c.key, first, pack('<d', kept - n))
    if c.blocks > 0 then set_sums(c, slot, pack('<d', sum(c, slot) - n)) end
  end
  c.total = c.total - n
  write(c)
end

-- Changes a block of slices at a time.
function sliding_counter.give(c, n)
  if c.total == 0 then return end
  sliding_counter.move(c)
  local given, to = min(n, c.count), c.present - 1
  c.count, c.total, n = c.count - given, c.total - given, n - given
  while n > 0 and to >= c.present - c.b do
    local slot = to % c.slots
    local from = max(c.present - c.b, to - slot % BLOCK)
    local first, size = c.head + 8 * (slot - to + from), to - from + 1
    local list = { parse('<' .. string.rep('d', size), part(c, first, first + 8 * size - 1)) }
    given = 0
    for k = size, 1, -1 do
      local permits = min(n - given, list[k])
      list[k], given = list[k] - permits, given + permits
    end
    call('SETRANGE', c.key, first, pack('<' .. string.rep('d', size), unpack(list, 1, size)))
    if c.blocks > 0 then set_sums(c, slot, pack('<d', sum(c, slot) - given)) end
    c.total, n, to = c.total - given, n - given, from - 1
  end
  write(c)
end
