-- One commit: every condition is checked before anything is changed, and a script runs alone, so it is all or nothing.
--
-- KEYS[1] is the store's prefix. ARGV: the number of writes; for each write its key, its effect (0 none, 1 put,
-- 2 remove), its condition ("*" none, "-" nothing there, "=V" version V there), and its version and value if it puts;
-- then for each append its log and its entry. Writes that put come first. Answers the position of each append,
-- {"conflict", write counted from 0, version found or "-"}, or {"format", what was found}.
local prefix, writes = KEYS[1], tonumber(ARGV[1])
local format = redis.call('GET', prefix .. 'format')
if format ~= '1' then
  return {'format', format or ''}
end
local values = prefix .. 'value:'
local at = 2
for n = 0, writes - 1 do
  local expected = ARGV[at + 2]
  if expected ~= '*' then
    local current = redis.call('HGET', values .. ARGV[at], 'v')
    if (current and '=' .. current or '-') ~= expected then
      return {'conflict', n, current or '-'}
    end
  end
  at = at + (ARGV[at + 1] == '1' and 5 or 3)
end
at = 2
for _ = 1, writes do
  local key, effect = ARGV[at], ARGV[at + 1]
  if effect == '1' then
    -- If there is no memory, the first command that needs some is refused: this one, before anything is changed.
    if redis.call('HSET', values .. key, 'v', ARGV[at + 3], 'd', ARGV[at + 4]) == 2 then
      redis.call('ZADD', prefix .. 'keys', 0, key)
    end
    at = at + 5
  else
    if effect == '2' and redis.call('DEL', values .. key) == 1 then
      redis.call('ZREM', prefix .. 'keys', key)
    end
    at = at + 3
  end
end
local positions = {}
for append = at, #ARGV, 2 do
  local log = ARGV[append]
  local position = redis.call('HINCRBY', prefix .. 'logs', log, 1)
  redis.call('XADD', prefix .. 'log:' .. log, string.format('%.0f-0', position), 'd', ARGV[append + 1])
  positions[#positions + 1] = position
end
return positions
