-- Fixed and calendar windows. The state is a string: LAYOUT; then start, stop and used permits of each window that has not ended,
-- oldest first. The first one is the present one, also after the clock went back behind its start; the others belong to calls that
-- wait. a is the period of a fixed window. Of a calendar, a and b are the start and stop of the window that the caller takes for the
-- present one, and text has the stops of the next ones, as far as the call may wait.
--
-- Mostly there is at most one window, and it holds now. It is kept as start, stop and used of the claim; used is nil if it is not open
-- yet. Else windows lists them.
local window = {}

local ONE = 25 -- bytes of a state with one window

-- Loads the windows that have not ended. A damaged state counts as none.
local function load(c, state, now)
  local list, last, old = {}, now + HORIZON + c.a, false
  state, old = current(c, state, 24)
  c.windows, c.changed = list, old
  for from = 2, state and #state or 0, 24 do
    local start, stop, used = parse('<ddd', state, from)
    if not valid(start, stop, used) or start > now + HORIZON or stop > last then
      c.windows = {}
      return damage(c)
    end
    if stop > now then
      table.insert(list, { start = start, stop = stop, used = used })
    else
      c.changed = true
    end
  end
end

-- Returns the windows that have not ended.
local function windows(c)
  if not c.windows then
    c.windows, c.changed = { c.used and { start = c.start, stop = c.stop, used = c.used } }, false
  end
  return c.windows
end

-- Returns the window that takes a charge at a time, or nil, and its number among the windows. A fixed window that would reach into the
-- next one becomes a part of that, which begins earlier then.
local function find(c, at)
  local list = windows(c)
  for i = 1, #list do
    local w = list[i]
    if at < w.stop then
      return (i == 1 or w.start <= at or c.kind == FIXED_WINDOW and w.start < at + c.a) and w or nil, i
    end
  end
  return nil, #list + 1
end

-- Returns the first time at which a window has room. A call that comes later may be admitted to an earlier window, which delays
-- nobody who waits for a later one.
function window.earliest(c, now, from)
  local w = find(c, from)
  while w and w.used + c.cost > c.limit do
    from = w.stop
    w = find(c, from)
  end
  return from
end

function window.check(c, now)
  local state = call('GET', c.key)
  if state and #state == ONE then
    local layout, start, stop, used = parse('<Bddd', state)
    if layout == LAYOUT and start <= now and now < stop and stop <= now + HORIZON + c.a and used >= 0 and used % 1 == 0 then
      c.start, c.stop, c.used, c.windows = start, stop, used, false
      return used + c.cost <= c.limit and now or stop
    end
  end
  if not state then
    local start, stop = c.a, c.b
    if c.kind == FIXED_WINDOW then start, stop = now, now + c.a end
    if start <= now and now < stop then
      c.start, c.stop, c.used, c.windows = start, stop, nil, false
      return now
    end
  end
  c.windows = {}
  if state then load(c, state, now) end
  local unknown = c.kind == CALENDAR and not c.windows[1] and (now < c.a or now >= c.b)
  return window.earliest(c, now, now), unknown
end

function window.room(c, now)
  if not c.windows then return max(0, c.limit - (c.used or 0)) end
  local w = c.windows[1]
  return w and max(0, c.limit - w.used) or c.limit
end

function window.full(c, now)
  if not c.windows then return (c.used or 0) > 0 and c.stop or now end
  local full = now
  for _, w in ipairs(c.windows) do
    if w.used > 0 then full = w.stop end
  end
  return full
end

-- Returns start and stop of the window that a charge at a time opens, or nothing if the caller did not tell it.
local function bounds(c, at)
  if c.kind == FIXED_WINDOW then return at, at + c.a end
  if at < c.a then return end
  local start, stop = c.a, c.b
  for next in string.gmatch(c.text, '%d+') do
    if at < stop then break end
    start, stop = stop, tonumber(next)
  end
  if at < stop then return start, stop end
end

function window.reserves(c, now, at)
  return window.earliest(c, now, at) == at and (find(c, at) or bounds(c, at)) ~= nil
end

local function open(c, at, i)
  local start, stop = bounds(c, at)
  local w = { start = start, stop = stop, used = 0 }
  table.insert(windows(c), i, w)
  c.changed = true
  return w
end

local function write(c)
  local state, last = HEAD, nil
  for _, w in ipairs(windows(c)) do
    state, last = state .. pack('<ddd', w.start, w.stop, w.used), w.stop
  end
  if last then set(c.key, state, last) else call('DEL', c.key) end
end

function window.commit(c, n, now, at)
  if at == now and not c.windows then
    local used = min((c.used or 0) + n, MOST_USED)
    if c.used then
      call('SETRANGE', c.key, '17', pack('<d', used))
    else
      set(c.key, pack('<Bddd', LAYOUT, c.start, c.stop, used), c.stop)
    end
    c.used = used
    return
  end
  if at > now and not windows(c)[1] then -- the present window comes first, so that the next one is not taken for it
    local present = open(c, now, 1)
    if c.kind == FIXED_WINDOW then present.stop = min(present.stop, at) end
  end
  local w, i = find(c, at)
  w = w or open(c, at, i)
  w.used = min(w.used + n, MOST_USED)
  if at < w.start then w.start, c.changed = at, true end
  if c.changed then
    write(c)
  else
    call('SETRANGE', c.key, 24 * i - 7, pack('<d', w.used))
  end
end

window.last = always -- a window takes back what is given up, whoever waits for a later one

function window.give_back(c, n, now, at, rollback)
  local list = windows(c)
  if not list[1] then return end
  for i, w in ipairs(list) do
    if w.start <= at and at < w.stop then
      w.used = max(0, w.used - n)
      if w.used == 0 and (w.start > now or rollback and w.start == at) then table.remove(list, i) end
      break
    end
  end
  write(c)
end

-- Returns the end of the present window.
function window.ends(c, now)
  if not c.windows then return c.stop end
  local w = c.windows[1]
  if w then return w.stop end
  local _, stop = bounds(c, now)
  return stop
end
