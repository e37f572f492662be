-- A block refuses a subject for some time after a refusal. The state is a string: LAYOUT, when the last block ends, and how long it is. Older
-- programs did not write the length. It expires a day after the block if blocks double, and otherwise with the block.
local block = {}
local states = use('states')
local max, min = math.max, math.min

local NAMES = { 'number', time = 'number' }

-- Notes in a claim until when its subject is blocked, if it is; when its last block ends; and how long a block that begins now is.
function block.note(c, now)
  local state = call('GET', c.block_key)
  local last = state and states.read_groups(c, state, NAMES, -1, now + HORIZON) or {}
  local stop, length = last[1] and last[1].number or 0, last[2] and last[2].number or 0
  c.blocked_until, c.block_end, c.block_length, c.next_block = stop > now and stop or nil, stop, length, c.block
  if c.block_most > 0 and now < stop + DAY then c.next_block = max(c.block, min(2 * length, c.block_most)) end
  if c.blocked_until then c.earliest, c.refused = max(c.earliest, stop), true end
end

-- Begins the blocks of the rules that refuse the call. A peek only reports them.
function block.begin(claims, now)
  for _, c in ipairs(claims) do
    if c.block_key and c.refused and not c.blocked_until then
      local stop = now + c.next_block
      c.earliest, c.block_end = max(c.earliest, stop), stop
      if not claims.peek then
        states.set(c.block_key, HEAD .. pack('<dd', stop, c.next_block), c.block_most > 0 and stop + DAY or stop)
      end
    end
  end
end
