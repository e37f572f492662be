-- A sliding window of constant size. It counts the permits in each slice of time, including the slice that is only partly in the window.
-- The state is a string: LAYOUT, the number of the newest slice, the permits of all slices, the permits of the newest slice, and a ring
-- with the permits of each slice. The ring is not kept up to date for the newest slice. a is the length of a slice, and b is how many
-- slices make a window.
local sliding_counter = { reserves = at_once, last = always }

local RING = 25 -- bytes before the ring

-- Returns where the permits of slice n are in the state.
local function offset(c, n) return RING + 8 * (n % (c.b + 1)) end

-- Returns some bytes of the state. A state from before LAYOUT is kept in the claim: see load_numbers.
local function part(c, first, last)
  if c.state then return string.sub(c.state, first + 1, last + 1) end
  return call('GETRANGE', c.key, first, last)
end

-- Returns the permits of some slices of the ring, as they are stored.
local function ring(c, from, to)
  if from > to then return '' end
  local first, last = offset(c, from), offset(c, to) + 7
  if first < last then return part(c, first, last) end
  return part(c, first, offset(c, c.b) + 7) .. part(c, offset(c, 0), last)
end

-- Returns the three numbers before the ring, or nothing. It keeps a state from before LAYOUT in the claim, since the next change writes all
-- of it.
local function load_numbers(c, now)
  local head = call('GETRANGE', c.key, '0', '24')
  c.state = nil
  if byte(head) ~= LAYOUT or #head < RING then
    local state = call('GET', c.key)
    c.state = state and current(c, state, 8)
    if not c.state then return end
    head = c.state
  end
  if #head >= RING then
    local newest, total, count = parse('<ddd', head, 2)
    if valid(newest) and valid(total) and valid(count) and newest * c.a <= now + HORIZON then return newest, total, count end
  end
  damage(c)
end

-- Loads the state as it is now: the number of the present slice, the permits that count now, and those of the newest slice. If the clock
-- was set back, the newest slice stays the present one. If no slice of the ring counts, newest is nil.
local function load(c, now)
  local newest, total, count = load_numbers(c, now)
  c.present = max(floor(now / c.a), newest or 0)
  c.newest, c.total, c.count = nil, 0, 0
  if not newest or c.present - newest > c.b then return end
  c.newest, c.total, c.count = newest, total, count
  local left = ring(c, newest + 1, c.present)
  for i = 1, #left, 8 do c.total = c.total - parse('<d', left, i) end
end

function sliding_counter.check(c, now)
  load(c, now)
  return sliding_counter.earliest(c, c.cost, now, now)
end

function sliding_counter.earliest(c, n, now, from)
  local excess = c.total + n - c.limit
  if excess <= 0 or not c.newest then return from end
  local slices = ring(c, c.present - c.b, c.newest - 1) .. pack('<d', c.count)
  for i = 1, #slices, 8 do
    excess = excess - parse('<d', slices, i)
    if excess <= 0 then return max(from, (c.present + (i + 7) / 8) * c.a) end
  end
  return from
end

function sliding_counter.full(c, now) return sliding_counter.earliest(c, c.limit, now, now) end

-- For a trigger it does not count the slice that is only partly in the window, so that the trigger does not fire too early.
function sliding_counter.room(c, now)
  local total, oldest = c.total, c.present - c.b
  if c.mode == TRIGGER and c.newest and oldest <= c.newest then
    total = total - (oldest == c.newest and c.count or (parse('<d', ring(c, oldest, oldest))))
  end
  return max(0, c.limit - total)
end

-- Makes the present slice the newest one. If no state counts, it first writes an empty one. It first converts a state from before LAYOUT.
local function move(c)
  local state = not c.newest and HEAD .. string.rep('\0', 24 + 8 * (c.b + 1)) or c.state
  if state then call('SET', c.key, state, 'KEEPTTL') end
  c.state = nil
  if c.newest == c.present then return end
  if c.newest then
    call('SETRANGE', c.key, offset(c, c.newest), pack('<d', c.count))
    for n = c.newest + 1, c.present do call('SETRANGE', c.key, offset(c, n), string.rep('\0', 8)) end
  end
  c.newest, c.count = c.present, 0
  expire(c.key, (c.present + c.b + 1) * c.a)
end

local function write(c)
  call('SETRANGE', c.key, '1', pack('<ddd', c.present, c.total, c.count))
end

function sliding_counter.commit(c, n, now)
  move(c)
  n = min(n, MOST_USED - c.total)
  c.total, c.count = c.total + n, c.count + n
  write(c)
end

function sliding_counter.give_back(c, n, now, at)
  local slice = floor(at / c.a)
  if c.total == 0 or slice < c.present - c.b or slice > c.present then return end
  move(c)
  if slice == c.present then
    n = min(n, c.count) -- after a reset there may be fewer
    c.count = c.count - n
  else
    local kept = parse('<d', ring(c, slice, slice))
    n = min(n, kept)
    call('SETRANGE', c.key, offset(c, slice), pack('<d', kept - n))
  end
  c.total = c.total - n
  write(c)
end
