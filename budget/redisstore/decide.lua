-- One decision about one budget. It obeys these rules:
--
--   * KEYS[1] is the only key that is read or written, and its hash tag keeps it
--     on one node of a cluster.
--   * The time is the server's own. A stored time never moves back, unless it
--     lies so far ahead that waiting for it would stop the refill for good.
--   * Every number is an integer below 2^53, where a double is exact: tokens in
--     millionths, times in microseconds, the remainder of a refill in 1/3.6e9 of
--     a millionth of a token. budget.Bucket and budget.Breaker decide the same.
--   * Whatever can fail is done before the first write.
--   * The last operations are remembered by their names, so that one that is
--     sent twice is decided once.
--
-- ARGV: verb, operation, capacity, refill and bonus of a record that has to be
-- made, the same three as nobody changed them, milliseconds to keep the record
-- (0: until it could be forgotten unnoticed), and what the verb needs:
--   configure      capacity, refill, bonus ('' leaves one alone)
--   ask            threshold, cooldown, lease, nonce
--   settle         threshold, cooldown, lease, nonce, generation, dice,
--                  bonus (1: one is due), result (failed, succeeded, release, '')

local HOUR = 3600000000
local DAY = 24 * HOUR
local AHEAD = HOUR          -- how far ahead a stored time may lie at least
local WINDOW = 10           -- outcomes that the breaker looks at
local AGE = HOUR / 6        -- how old they may be
local FRESH = HOUR / 60     -- ten successes younger than this teach nothing
local LONGEST = HOUR / 12   -- the longest cooldown after failed probes
local LONGEST_LEASE = DAY
local LONGEST_REST = 365 * DAY -- whatever cooldown is asked for
local OPERATIONS = 16       -- how many are remembered
local DIRTY_MS = 7 * DAY / 1000
local FOREVER_MS = 3650 * DAY / 1000

local verb, operation = ARGV[1], ARGV[2]
local floor, max, min = math.floor, math.max, math.min

local clock = redis.call('TIME')
local server = clock[1] * 1000000 + clock[2]
local now = server

-- The record.

local NUMBERS = {
  't', 'tokens', 'part', 'capacity', 'refill', 'bonus',
  'granted', 'denied', 'refunded', 'deposits', 'resets', 'anomalies',
  'state', 'generation', 'failures', 'open_for', 'open_until', 'lease_end',
}
local CLOSED, OPEN, HALF_OPEN = 0, 1, 2

local function fresh(tokens)
  local r = { holder = '0', recent = {}, operations = '' }
  for _, name in ipairs(NUMBERS) do r[name] = 0 end
  r.t = now
  r.capacity, r.refill, r.bonus = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
  r.tokens = tokens or r.capacity * 1000000
  return r
end

local function integer(text)
  if not text or #text > 17 or not string.find(text, '^%-?%d+$') then return nil end
  local n = tonumber(text)
  if n > 9007199254740991 or n < -9007199254740991 then return nil end
  return n
end

local function between(n, low, high) return n >= low and n <= high end

local function sensible(r)
  for _, name in ipairs({ 'granted', 'denied', 'refunded', 'deposits', 'resets', 'anomalies', 'generation', 'failures' }) do
    if r[name] < 0 then return false end
  end
  return between(r.capacity, 0, 1000000) and between(r.refill, 0, 1000 * HOUR) and between(r.bonus, 0, 1000000)
    and between(r.tokens, 0, r.capacity * 1000000) and between(r.part, 0, HOUR - 1)
    and between(r.state, CLOSED, HALF_OPEN) and between(r.open_for, 0, LONGEST_REST) and string.find(r.holder, '^%d+$') ~= nil
end

-- recent is text: f or s and the time of each outcome, oldest first.
local function outcomes(text)
  local list, rebuilt = {}, {}
  for how, at in string.gmatch(text, '([fs])(%-?%d+)') do
    local n = integer(at)
    if not n then return nil end
    list[#list + 1] = { failed = how == 'f', at = n }
    rebuilt[#rebuilt + 1] = how .. at
  end
  if #list > WINDOW or table.concat(rebuilt, ' ') ~= text then return nil end
  return list
end

-- load returns the record, nil when there is none, false when it makes no sense.
local function load()
  local raw = redis.call('HMGET', KEYS[1], 'holder', 'recent', 'operations', unpack(NUMBERS))
  local r, there = { holder = raw[1], recent = raw[2], operations = raw[3] }, 0
  for i = 1, #NUMBERS + 3 do
    if raw[i] then there = there + 1 end
  end
  if there == 0 then return nil end
  if there < #NUMBERS + 3 then return false end
  for i, name in ipairs(NUMBERS) do
    r[name] = integer(raw[i + 3])
    if not r[name] then return false end
  end
  r.recent = outcomes(r.recent)
  if not r.recent or not sensible(r) then return false end
  return r
end

local r = load()
local missing, damaged = r == nil, r == false
local kept
if missing then
  r = fresh()
elseif damaged then
  local fields = redis.call('HGETALL', KEYS[1])
  kept = string.sub(table.concat(fields, ' '), 1, 1000)
  r = fresh(0)
  r.resets = 1
end

-- The bucket.

local function most() return r.capacity * 1000000 end
local function full() return r.tokens >= most() end

local function add(amount)
  r.tokens = min(r.tokens + amount, most())
  if full() then r.part = 0 end
end

-- yield returns what the rate yields in a time, and the remainder. An hour is
-- 60000 * 60000 microseconds, which keeps every product below 2^53.
local function yield(elapsed)
  local hours = floor(elapsed / HOUR)
  local rest = elapsed - hours * HOUR
  if hours * r.refill > 1e15 then return 1e15, 0 end
  local fast = floor(r.refill / HOUR)
  local slow = r.refill - fast * HOUR
  local high = floor(slow / 60000)
  local x = rest * high
  local q = floor(x / 60000)
  local y = (x - q * 60000) * 60000 + rest * (slow - high * 60000) + r.part
  local z = floor(y / HOUR)
  return hours * r.refill + rest * fast + q + z, y - z * HOUR
end

local function credit(elapsed)
  if r.refill <= 0 or full() then return end
  local whole, part = yield(elapsed)
  if whole >= most() - r.tokens then
    r.tokens, r.part = most(), 0
  else
    r.tokens, r.part = r.tokens + whole, part
  end
end

-- The clock.

-- absurd: a stored time lies further ahead than an hour and than the time that
-- the refill needs to fill the bucket. 1000 * part < refill: that time is rounded
-- up to a nanosecond.
local function absurd(ahead)
  if ahead <= AHEAD then return false end
  if full() then return true end
  if r.refill <= 0 then return false end
  local whole, part = yield(ahead)
  local gap = most() - r.tokens
  return not (whole < gap or whole == gap and 1000 * part < r.refill)
end

local function advance()
  if r.t <= 0 or r.t > now and absurd(r.t - now) then
    local by = now - r.t
    r.open_until, r.lease_end = r.open_until + by, r.lease_end + by
    for _, past in ipairs(r.recent) do past.at = past.at + by end
    r.t, r.anomalies = now, r.anomalies + 1
  elseif now > r.t then
    credit(now - r.t)
    r.t = now
  end
  now = r.t
end

-- The breaker.

local threshold, cooldown, lease, nonce
local function rule()
  threshold, nonce = tonumber(ARGV[10]), ARGV[13]
  cooldown, lease = min(tonumber(ARGV[11]), LONGEST_REST), min(tonumber(ARGV[12]), LONGEST_LEASE)
end

local function unstick()
  local longest = floor(max(r.open_for, cooldown, LONGEST) * 1000 * 1.2)
  longest = math.ceil(longest / 1000)
  if r.state == OPEN and r.open_until - now > longest then r.open_until = now + longest end
  if r.state == HALF_OPEN and r.lease_end - now > LONGEST_LEASE then r.lease_end = now end
end

-- ask returns whether the caller may run and whether it took the lease.
local function ask()
  unstick()
  if r.state == CLOSED then return true, false end
  if r.state == OPEN and now < r.open_until then return false, false end
  if r.state == HALF_OPEN then
    if r.holder == nonce then
      r.lease_end = now + lease
      return true, false
    end
    if r.holder ~= '0' and now < r.lease_end then return false, false end
  end
  r.state, r.generation = HALF_OPEN, r.generation + 1
  r.holder, r.lease_end = nonce, now + lease
  return true, true
end

local function open(time)
  local spread = 0.8 + 0.4 * tonumber(ARGV[15])
  r.state, r.generation, r.open_for = OPEN, r.generation + 1, time
  r.holder, r.lease_end = '0', 0
  -- In nanoseconds, cut as budget.Breaker cuts, then up to the microsecond: no
  -- caller can tell the difference, because now is a whole microsecond.
  r.open_until = now + math.ceil(floor(time * 1000 * spread) / 1000)
end

local function remember(failed)
  if #r.recent >= WINDOW then table.remove(r.recent, 1) end
  r.recent[#r.recent + 1] = { failed = failed, at = now }
end

local function tripped()
  if r.failures >= threshold then return true end
  local young, failed = 0, 0
  for _, past in ipairs(r.recent) do
    if now - past.at < AGE then
      young = young + 1
      if past.failed then failed = failed + 1 end
    end
  end
  return young >= threshold and 2 * failed >= young
end

local function close()
  r.state, r.generation, r.failures, r.open_for = CLOSED, r.generation + 1, 0, 0
  r.open_until, r.holder, r.lease_end, r.recent = 0, '0', 0, {}
end

local function count(failed)
  if tonumber(ARGV[14]) ~= r.generation or r.state == OPEN then return end
  if r.state == HALF_OPEN then
    if r.holder ~= nonce then return end
    if not failed then return close() end
    r.failures = r.failures + 1
    remember(true)
    return open(min(2 * r.open_for, max(LONGEST, cooldown)))
  end
  remember(failed)
  if not failed then
    r.failures = 0
    return
  end
  r.failures = r.failures + 1
  if tripped() then open(cooldown) end
end

local function clean()
  if r.state ~= CLOSED or r.failures > 0 or #r.recent < WINDOW then return false end
  for _, past in ipairs(r.recent) do
    if past.failed or now - past.at > FRESH then return false end
  end
  return true
end

-- The verbs: each returns whether it granted, whether it took a lease, and
-- whether there is something to write.

local verbs = {}

function verbs.peek() return false, false, false end

function verbs.withdraw()
  if r.tokens < 1000000 then
    r.denied = r.denied + 1
    return false, false, true
  end
  r.tokens, r.granted = r.tokens - 1000000, r.granted + 1
  return true, false, true
end

function verbs.refund()
  add(1000000)
  r.refunded = r.refunded + 1
  return false, false, not missing
end

function verbs.configure()
  local differs = missing
  for i, name in ipairs({ 'capacity', 'refill', 'bonus' }) do
    local value = tonumber(ARGV[9 + i])
    if value and value ~= r[name] then
      r[name], differs = value, true
    end
  end
  if differs then add(0) end
  local keep = tonumber(ARGV[9])
  if keep > 0 and not missing and redis.call('PTTL', KEYS[1]) < keep - DAY / 1000 then differs = true end
  return false, false, differs
end

function verbs.ask()
  rule()
  local granted, leased = ask()
  return granted, leased, r.state ~= CLOSED and not missing
end

function verbs.settle()
  rule()
  local bonus, result = ARGV[16] == '1', ARGV[17]
  local worth = bonus and not missing and not full()
  if result == 'release' then
    worth = worth or r.state == HALF_OPEN and r.holder == nonce
  elseif result ~= '' then
    worth = worth or result == 'failed' or not clean()
  end
  if not worth and not damaged then return false, false, false end
  if bonus then
    add(r.bonus)
    r.deposits = r.deposits + 1
  end
  if result == 'release' then
    if r.state == HALF_OPEN and r.holder == nonce then r.holder, r.lease_end = '0', 0 end
  elseif result ~= '' then
    count(result == 'failed')
  end
  return false, false, true
end

function verbs.reset()
  r.tokens, r.part = most(), 0
  close()
  return false, false, not missing
end

-- What is written.

local function digits(n) return string.format('%.0f', n) end

local function recent()
  local list = {}
  for i, past in ipairs(r.recent) do list[i] = (past.failed and 'f' or 's') .. digits(past.at) end
  return table.concat(list, ' ')
end

-- keep returns for how many milliseconds the record must stand: at least twice
-- the time to fill the bucket, because a record that is gone is full; forever
-- when that never ends or when somebody chose the parameters.
local function keep()
  local fixed = tonumber(ARGV[9])
  if fixed > 0 then return fixed end
  for i, name in ipairs({ 'capacity', 'refill', 'bonus' }) do
    if r[name] ~= tonumber(ARGV[5 + i]) then return nil end
  end
  if r.refill == 0 then return nil end
  local ms = max(HOUR / 1000, math.ceil(2 * most() / r.refill * HOUR / 1000))
  if r.state ~= CLOSED or r.failures > 0 then ms = max(ms, DIRTY_MS, 2 * r.open_for / 1000) end
  if ms > FOREVER_MS then return nil end
  return ms
end

local function write(mark)
  local all = {}
  for one in string.gmatch(r.operations, '%S+') do all[#all + 1] = one end
  while #all >= OPERATIONS do table.remove(all, 1) end
  all[#all + 1] = operation .. mark
  local list = { 'holder', r.holder, 'recent', recent(), 'operations', table.concat(all, ' ') }
  for _, name in ipairs(NUMBERS) do
    list[#list + 1] = name
    list[#list + 1] = digits(r[name])
  end
  if kept then
    list[#list + 1] = 'damaged'
    list[#list + 1] = kept
  end
  local ms = keep()
  redis.call('HSET', KEYS[1], unpack(list))
  if ms then
    redis.call('PEXPIRE', KEYS[1], digits(ms))
  else
    redis.call('PERSIST', KEYS[1])
  end
end

advance()
local before = string.match(' ' .. r.operations, ' ' .. operation .. '([gld])')
local granted, leased
if before and verb ~= 'peek' then
  granted, leased = before ~= 'd', before == 'l'
else
  local worth
  granted, leased, worth = verbs[verb]()
  if worth or damaged and verb ~= 'peek' then
    write(leased and 'l' or granted and 'g' or 'd')
  end
end

local answer = {
  granted and 1 or 0, leased and 1 or 0, missing and 1 or 0, damaged and 1 or 0,
  server, r.holder, recent(),
}
for _, name in ipairs(NUMBERS) do answer[#answer + 1] = r[name] end
return answer
