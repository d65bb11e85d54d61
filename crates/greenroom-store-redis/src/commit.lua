-- One commit: every condition is checked before anything is changed, and a script runs alone, so it is all or nothing.
--
-- KEYS[1] is the store's prefix. ARGV: what versions end with; the number of writes; for each write its key, its effect
-- (0 none, 1 put, 2 remove), its condition ("*" none, "-" nothing there, "=V" version V there) and its value; then for
-- each append its log and its entry. Answers {"ok", version or "" for each write, position for each append},
-- {"conflict", write counted from 0, version found or "-"}, or {"format", what was found}.
local prefix, ending, writes = KEYS[1], ARGV[1], tonumber(ARGV[2])
local format = redis.call('GET', prefix .. 'format')
if format ~= '1' then
  return {'format', format or ''}
end
for n = 0, writes - 1 do
  local expected = ARGV[n * 4 + 5]
  if expected ~= '*' then
    local current = redis.call('HGET', prefix .. 'value:' .. ARGV[n * 4 + 3], 'v')
    if (current and '=' .. current or '-') ~= expected then
      return {'conflict', n, current or '-'}
    end
  end
end
local answer = {'ok'}
for n = 0, writes - 1 do
  local key, effect = ARGV[n * 4 + 3], ARGV[n * 4 + 4]
  local version = ''
  if effect == '1' then
    -- The first command that needs memory is refused before anything is changed, if there is none.
    version = string.format('%.0f', redis.call('INCR', prefix .. 'version')) .. ending
    if redis.call('HSET', prefix .. 'value:' .. key, 'v', version, 'd', ARGV[n * 4 + 6]) == 2 then
      redis.call('ZADD', prefix .. 'keys', 0, key)
    end
  elseif effect == '2' then
    if redis.call('DEL', prefix .. 'value:' .. key) == 1 then
      redis.call('ZREM', prefix .. 'keys', key)
    end
  end
  answer[#answer + 1] = version
end
for at = 3 + writes * 4, #ARGV, 2 do
  local log = ARGV[at]
  local position = redis.call('HINCRBY', prefix .. 'logs', log, 1)
  redis.call('XADD', prefix .. 'log:' .. log, string.format('%.0f-0', position), 'd', ARGV[at + 1])
  answer[#answer + 1] = position
end
return answer
