-- A place is a future time for which a waiting call is charged. A free place was given up while others were behind it. Its permits stay
-- charged, because the places behind it were computed with that charge. A later call may take a free place. The state is a string: LAYOUT,
-- and then the time and the permits of each free place, in the order of time. A state keeps MAX_PLACES; any more are lost.
local places = {}

local MAX_PLACES = 64
local NAMES = { 'at', 'permits', time = 'at' }

-- Loads the free places of a claim, except those whose time has come.
function places.load(c, now)
  c.places = read_groups(c, call('GET', c.free_key), NAMES, now, now + HORIZON)
  return c.places
end

-- Returns the index of the free place at a time, or nil if it is missing or has fewer than n permits.
local function place_at(c, at, n)
  for i, p in ipairs(c.places) do
    if p.at == at and p.permits >= n then return i end
  end
end

local function add_place(c, at, n)
  local i = 1
  while c.places[i] and c.places[i].at < at do i = i + 1 end
  local p = c.places[i]
  if p and p.at == at then
    p.permits = p.permits + n
  elseif #c.places < MAX_PLACES then
    table.insert(c.places, i, { at = at, permits = n })
  end
end

-- Takes n permits of the free place at a time, and reports whether there are as many. The rest of the place stays free. In a prepaid bucket
-- the rest moves to the time at which the n permits are paid.
function places.take(c, at, n)
  local i = place_at(c, at, n)
  if not i then return false end
  local rest = table.remove(c.places, i).permits - n
  if rest > 0 then add_place(c, c.prepaid and use('bucket').after(c, at, n) or at, rest) end
  write_groups(c.free_key, c.places, NAMES)
  return true
end

-- Reports whether each rule of a call can use a future time: it has a free place then, or admits the call then, behind all its places.
local function meets(claims, now, at)
  for _, c in ipairs(claims.enforced) do
    if c.blocked_until or c.earliest > now and at > now + c.wait then return false end
    if not place_at(c, at, c.cost) and not (c.earliest <= at and c.is.reserves(c, now, at)) then return false end
  end
  return true
end

-- Returns the time of the first free place that a call can use, or nil. The call may wait, so each of its rules in enforce mode has a key
-- of free places.
function places.first(claims, now)
  local first
  for _, c in ipairs(claims.enforced) do places.load(c, now) end
  for _, c in ipairs(claims.enforced) do
    if c.wait > 0 and c.earliest > now then
      for _, p in ipairs(c.places) do
        if (not first or p.at < first) and meets(claims, now, p.at) then first = p.at end
      end
    end
  end
  return first
end

-- Gives back n permits of a charge for a future time. If other calls have later places, these permits become a free place. Otherwise they
-- are given back, and so are the permits of the free places that are the last ones then.
function places.give_back(c, n, now)
  if not c.is.last(c, n, now, c.wait) then
    add_place(c, c.wait, n)
    return write_groups(c.free_key, c.places, NAMES)
  end
  c.is.give_back(c, n, now, c.wait)
  if not c.places[1] then return end
  c.price, c.price_stored = 0, 0 -- no price is kept for a free place
  for i = #c.places, 1, -1 do
    local p = c.places[i]
    if not c.is.last(c, p.permits, now, p.at) then break end
    c.is.give_back(c, p.permits, now, p.at)
    c.places[i] = nil
  end
  write_groups(c.free_key, c.places, NAMES)
end
