-- A lease is a number of permits that a process takes ahead and hands out itself until the lease ends. The permits are checked at the
-- start of the lease, with all later charges counted, and recorded at its end. So whenever the process hands them out, no span of a
-- sliding window has more permits than the limit, and no span of a bucket has more than the burst and what the bucket gains in that span.
-- A fixed or calendar window is charged at the start of the lease, and the lease ends no later than the window.
local lease = {}
local states = use('states')
local ceil, max, min = math.ceil, math.max, math.min

-- Takes permits ahead for a call that is admitted: up to most, and up to half of what each rule has left, but at least the call's cost.
-- Returns how many, and when the lease ends. Notes for each rule when the permits are recorded.
function lease.take(claims, now, most, length)
  local n, stop = most, now + length
  for _, c in ipairs(claims) do
    n = min(n, ceil(c.is.room(c, now) / 2))
    if c.is.ends then stop = min(stop, c.is.ends(c, now)) end
  end
  n = max(n, claims[1].cost)
  for _, c in ipairs(claims) do
    local at = c.is.ends and now or stop
    states.record(c, at)
    c.is.commit(c, n, at, at) -- may note another time, which then replaces at
  end
  return n, stop
end
