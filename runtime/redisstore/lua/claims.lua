-- The claims of a call, as they are sent. Each claim is one argument: kind, mode, has, number, limit, cost, a, b, wait, block and text: see
-- common.lua. Its keys are those of its state, of its free places if it has any, and of its block if it has one.

local MAX_KNOWN = 1000

-- Claims by the text they were sent as, which is the same for all subjects. A library parses such a text once.
local known, size = {}, 0

local function new_claim(record, adjusts)
  local kind, mode, has, number, limit, cost, p, q, wait, block, text = parse('<BBBBdddddds', record)
  local is = use(KINDS[kind])
  local c = {
    kind = kind, mode = mode, has = has, number = number, limit = limit, cost = cost, a = p, b = q, wait = wait, block = block,
    text = text, is = is, check = is.check, load = is.load, commit = is.commit,
    plain = mode == ENFORCE and has == 0 and cost == 1 and not is.has_price,
  }
  if is.prepare then is.prepare(c) end
  if not is.of_one_call and not adjusts then -- an adjustment has the time of a charge
    if size == MAX_KNOWN then known, size = {}, 0 end
    known[record], size = c, size + 1
  end
  return c
end

-- Reads the further keys of a claim, which begin at keys[k], and returns the index behind them.
local function read_keys(c, keys, k)
  if c.has % 2 >= FREE then
    c.free_key, k = keys[k], k + 1
  end
  if c.has >= BLOCK then
    c.block_key, k = keys[k], k + 1
  end
  return k
end
