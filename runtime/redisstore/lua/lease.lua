-- Permits that a process takes ahead, to hand them out itself until the lease ends. A lease is checked at its start, with all later
-- charges counted, and recorded at its end: so no span holds more than the limit, whenever the permits are handed out meanwhile. A window
-- is charged at the start, and ends the lease with itself.
local lease = {}

-- Takes permits ahead for a call that is admitted: its cost, or more, up to half of what every rule has left. Returns how many, when the
-- lease ends, and for each rule an entry of the reply: 6, the time the permits are recorded at.
function lease.take(claims, now, op)
  local n, stop, recorded = op.most, now + op.lease, ''
  for _, c in ipairs(claims) do
    n = min(n, ceil(c.is.room(c, now) / 2))
    if c.is.ends then stop = min(stop, c.is.ends(c, now)) end
  end
  n = max(n, claims[1].cost)
  for i, c in ipairs(claims) do
    recorded = recorded .. pack('<BBd', i, 6, c.is.lease(c, n, now, stop))
  end
  return n, stop, recorded
end
