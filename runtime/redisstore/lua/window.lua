-- Fixed and calendar windows. The state is a string: start, stop and used permits of each window that has not ended, oldest first.
-- The first one is the present one, also after the clock went back behind its start; the others belong to calls that wait.
-- a is the period of a fixed window. Of a calendar, a and b are the start and stop of the window that the caller takes for the
-- present one, and text has the stops of the next ones, as far as the call may wait.
--
-- The claim itself holds the present window in start, stop and used; later has the others.
local window = {}

local function scan(c, state, now)
  for from = 1, #state, 24 do
    local start, stop, used = parse('<ddd', state, from)
    if not valid(start, stop, used) then return end
    if stop <= now then
      c.dropped = true
    elseif not c.stop then
      c.start, c.stop, c.used = start, stop, used
    else
      c.later = c.later or {}
      table.insert(c.later, { start = start, stop = stop, used = used })
    end
  end
end

-- Returns the window that takes a charge at a time; or nil, and where among the later ones to insert a new one. A fixed window that
-- would reach into the next one becomes a part of that, which begins earlier then.
local function find(c, at)
  if not c.stop or at < c.stop then return c.stop and c end
  for i, w in ipairs(c.later or {}) do
    if at < w.stop then
      if w.start <= at or c.kind == FIXED and w.start < at + c.a then return w end
      return nil, i
    end
  end
  return nil, c.later and #c.later + 1 or 1
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
  c.stop, c.later, c.dropped = nil, nil, nil
  if state and #state % 24 == 0 then scan(c, state, now) end
  if not c.stop then return now, c.kind == CALENDAR and (now < c.a or now >= c.b) end
  if c.used + c.cost <= c.limit then return now end
  return c.later and window.earliest(c, now, now) or c.stop
end

function window.room(c, now)
  if not c.stop then return c.limit end
  return max(0, c.limit - c.used)
end

function window.full(c, now)
  local full = c.stop and c.used > 0 and c.stop or now
  for _, w in ipairs(c.later or {}) do
    if w.used > 0 then full = w.stop end
  end
  return full
end

-- Returns start and stop of the window that a charge at a time opens, or nothing if the caller did not tell it.
local function bounds(c, at)
  if c.kind == FIXED then return at, at + c.a end
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

local function write(c)
  local state, last = pack('<ddd', c.start, c.stop, c.used), c.stop
  for _, w in ipairs(c.later or {}) do
    state, last = state .. pack('<ddd', w.start, w.stop, w.used), w.stop
  end
  set(c.key, state, last)
end

local function open(c, at)
  local start, stop = bounds(c, at)
  return { start = start, stop = stop, used = 0 }
end

function window.commit(c, n, now, at)
  if not c.stop then -- the present window comes first, so that the next one is not taken for it
    c.start, c.stop = bounds(c, now)
    c.used, c.dropped = 0, true
    if c.kind == FIXED and at > now then c.stop = min(c.stop, at) end
  end
  local w, i = find(c, at)
  if not w then
    w = open(c, at)
    c.later = c.later or {}
    table.insert(c.later, i, w)
    c.dropped = true
  end
  w.used = min(w.used + n, MOST_USED)
  if at < w.start then w.start, c.dropped = at, true end
  if c.dropped or w ~= c then
    write(c)
  else
    call('SETRANGE', c.key, '16', pack('<d', w.used))
  end
end

window.last = always -- a window takes back what is given up, whoever waits for a later one

function window.charge(c, n, now) window.commit(c, n, now, now) end

function window.give_back(c, n, now, at, rollback)
  local list = c.later or {}
  if not c.stop then return end
  table.insert(list, 1, c)
  for i, w in ipairs(list) do
    if w.start <= at and at < w.stop then
      w.used = max(0, w.used - n)
      if w.used == 0 and (w.start > now or rollback and w.start == at) then table.remove(list, i) end
      break
    end
  end
  local first = table.remove(list, 1)
  if not first then
    call('DEL', c.key)
    return
  end
  c.start, c.stop, c.used, c.later = first.start, first.stop, first.used, list
  write(c)
end

-- Returns the end of the present window.
function window.ends(c, now)
  if c.stop then return c.stop end
  local _, stop = bounds(c, now)
  return stop
end

function window.lease(c, n, now)
  window.commit(c, n, now, now)
  return now
end
