-- Returns the server's time in microseconds since the Unix epoch. It is the only clock of a decision.
local function clock()
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end
