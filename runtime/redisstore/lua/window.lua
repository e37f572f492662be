-- Fixed and calendar windows. The state is a string: LAYOUT, and then the start, the stop and the used permits of each window that has not
-- ended, oldest first. The first window is the present one, even if the clock was set back to before its start. The others belong to
-- waiting calls. A window that has ended stays the first until the next window begins, or until another is opened in between. So a charge of
-- now is not taken for one of the next window.
--
-- For a fixed window, a is the period. For a calendar window, a is the longest period. text has the start and stop of the window that holds
-- now by the caller's clock, and the stops of the next windows, as far as the call may wait. For an anchored window, these are the windows of
-- the claim's own anchor. They say nothing about the window that is open.
--
-- c.windows is the list of windows that have not ended, and c.open tells whether one of them takes charges of now. Usually there is one window,
-- and it holds now. Then the claim itself is that window, and the list is c.alone, which has only the claim and is made once. If c.open is
-- false, the first of the list is the window that a charge would open now, and c.windows.ended is the one that stays before the others. The
-- calls of a run on one key share a list of several windows.
local window = {
  counts_running = false, load = false, prepare = false, check = false, commit = false, make_others = false,
}

local ONE = 25 -- bytes of a state with one window

function window.prepare(c) c.alone = { c } end

-- Returns the start and stop of the window that a charge at a time opens, or nothing if the caller did not send that window.
local function bounds(c, at)
  if c.kind == FIXED_WINDOW then return at, at + c.a end
  local start
  for time in string.gmatch(c.text, '%S+') do
    time = tonumber(time)
    if at < time then return start, start and time end
    start = time
  end
end

function window.check(c, now)
  local state = call('GET', c.key)
  c.windows, c.open = c.alone, state
  if state and #state == ONE then
    local layout, start, stop, used = parse('<Bddd', state)
    if layout == LAYOUT and start <= now and now < stop and stop <= now + HORIZON + c.a and used >= 0 and used % 1 == 0 then
      c.start, c.stop, c.used = start, stop, used
      return used + c.cost <= c.limit and now or stop
    end
  end
  local list = state and (shared[c.key] or complete(window).read(c, state, now))
  if list and window.is_open(c, list, now) then
    c.windows = list
    return window.earliest(c, c.cost, now, now)
  end
  c.start, c.stop = bounds(c, now)
  if c.kind == ANCHORED then c.start = now end -- the window before it may have ended now, by another anchor
  c.used, c.open = 0, false
  local ahead = list and list[1]
  if ahead then
    c.windows = { { start = c.start or now, stop = math.min(c.stop or ahead.start, ahead.start), used = 0 }, unpack(list) }
    c.windows.ended = list.ended
  end
  return now, not c.stop and OTHER_WINDOW
end

function window.commit(c, n, now, at)
  local w = at > now and complete(window).at(c, at) or c.windows[1]
  local used = w.used + n
  if used > MOST_USED then used = MOST_USED end
  w.used = used
  if c.windows ~= c.alone then
    w.start = math.min(w.start, at)
    c.windows.ended = nil
    window.write(c)
  elseif c.open then
    call('SETRANGE', c.key, '17', pack('<d', used))
  else
    use('states').set(c.key, pack('<Bddd', LAYOUT, c.start, c.stop, used), c.stop)
  end
end

-- What follows is made when a call first uses it.

function window.room(c) return c.limit - c.windows[1].used end

function window.full(c, now)
  local full = now
  for _, w in ipairs(c.windows) do
    if w.used > 0 then full = w.stop end
  end
  return full
end

function window.more(c, room, now)
  local present = c.windows[1]
  if room >= c.limit or present.used + room < c.limit then return now end
  return c.windows[2] and complete(window).earliest(c, room + 1, now, now) or present.stop
end

-- What follows is made when a call first uses it.

local states = use('states')
local max, min = math.max, math.min
local NAMES = { 'start', 'stop', 'used', time = 'stop' }

-- Shares a list of several windows. A list of one is not shared: its window may be a claim, or be charged as one.
local function share(c, list)
  shared[c.key] = list[2] and list
  return list
end

function window.read(c, state, now) return share(c, states.read_groups(c, state, NAMES, now, now + HORIZON + c.a)) end

function window.write(c) states.write_groups(c.key, share(c, c.windows), NAMES) end

-- Reports whether a window takes a charge at a time before its stop. A fixed window that would overlap the next one is not opened: the next
-- one takes the charge, and begins earlier.
local function contains(c, w, at) return w.start <= at or c.kind == FIXED_WINDOW and w.start < at + c.a end

-- Reports whether one of the windows takes charges of now.
function window.is_open(c, list, now) return list[1] and (not list.ended or contains(c, list[1], now)) end

-- Returns the window for a charge at a time, and its index. If there is none, it returns nil and the index at which to insert a new one. A
-- fixed window that a charge of now would open takes no later charge, which opens a window of its own.
local function window_for(c, at)
  local list, opens = c.windows, not c.open and c.kind == FIXED_WINDOW
  for i, w in ipairs(list) do
    local passes = at < w.stop and not (opens and i == 1 and w.start < at)
    if passes then return (i == 1 or contains(c, w, at)) and w or nil, i end
  end
  return nil, #list + 1
end

-- Returns the first time at which a window has room. A later call may be admitted to an earlier window. That delays no call that waits for
-- a later window.
function window.earliest(c, n, now, from)
  local w, i = window_for(c, from)
  while w and w.used + n > c.limit do
    from, i = w.stop, i + 1
    w = c.windows[i]
    if w and not contains(c, w, from) then w = nil end
  end
  return from
end

-- Takes nothing if it would have to open a window without an anchor.
function window.charge(c, n, now, at)
  if c.kind == ANCHORED and not c.open and c.stop == NEVER then return states.add_note(pack('<BBdd', c.number, PRICE, n, 0)) end
  c.commit(c, n, now, at)
end

-- Tells the windows after the present one, in which calls wait. When permits of the present one were taken is unknown.
function window.charges(c, now, tell)
  for i = 2, #c.windows do tell(c.windows[i].start, c.windows[i].used) end
end

-- Returns the end of the present window.
function window.ends(c) return c.windows[1].stop end

-- Is false if too many windows would be open, or if the caller did not send the window.
function window.reserves(c, now, at)
  local w = window_for(c, at)
  if w then return w.used + c.cost <= c.limit end
  return #c.windows <= MAX_AHEAD and bounds(c, at) ~= nil
end

-- Returns the window for a charge at a future time, and opens it if there is none. The present window then comes before it in the state,
-- even without a charge. Otherwise the new window would be read as the present one.
function window.at(c, at)
  local present = c.windows[1]
  if not c.open and c.kind == FIXED_WINDOW then present.stop = min(present.stop, at) end
  local w, i = window_for(c, at)
  if w then return w end
  w = { used = 0 }
  w.start, w.stop = bounds(c, at)
  local before, after = c.windows[i - 1], c.windows[i] -- by another anchor it would overlap them
  w.start = max(w.start, before.stop)
  if after then w.stop = min(w.stop, after.start) end
  if c.windows == c.alone then c.windows = { { start = c.start, stop = c.stop, used = c.used } } end -- a library keeps c from run to run
  table.insert(c.windows, i, w)
  return w
end

function window.give_back(c, n, now, at, rollback)
  local ended = c.windows.ended
  if not c.open and not ended then return end
  local kept = {}
  for i, w in ipairs(c.windows) do
    local charged = w.start <= at and at < w.stop
    if charged then w.used = max(0, w.used - n) end
    local closes = charged and w.used == 0 and (w.start > now or rollback and w.start == at)
    if closes and i == 1 then ended = { start = min(w.start, now), stop = now, used = 0 } end
    if not closes and (c.open or i > 1) then table.insert(kept, w) end
  end
  c.windows = kept
  if kept[1] and ended and kept[1].start > now then
    kept.ended = ended
    table.insert(kept, 1, ended)
    window.write(c)
    table.remove(kept, 1)
  else
    window.write(c)
  end
end
