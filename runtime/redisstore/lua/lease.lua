-- Permits that a process takes ahead, to hand them out itself until the lease ends. A lease is checked at its start, against all charges,
-- also later ones, and recorded at its end. So no span holds more than the limit, whenever the process hands the permits out. A fixed or
-- calendar window is charged at the start, and the lease ends with the window.
local lease = {}

-- Takes permits ahead for a call that is admitted: its cost, or more, up to half of what every rule has left. Returns how many, and
-- when the lease ends, and notes for each rule when the permits are recorded.
function lease.take(claims, now, most, length)
  local n, stop = most, now + length
  for _, c in ipairs(claims) do
    n = min(n, ceil(c.is.room(c, now) / 2))
    if c.is.ends then stop = min(stop, c.is.ends(c, now)) end
  end
  n = max(n, claims[1].cost)
  for _, c in ipairs(claims) do
    local at = c.is.ends and now or stop
    record(c, at)
    c.is.commit(c, n, at, at) -- may record another time, which counts then
  end
  return n, stop
end
