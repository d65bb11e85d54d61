-- Several commits, one after another. Of each, every condition is checked before anything is changed, and a script runs
-- alone, so it is all or nothing.
--
-- KEYS[1] is the store's prefix. ARGV: the number of commits; for each the number of its writes and appends; for each
-- write its key, its effect (0 none, 1 put, 2 remove), its condition ("*" none, "-" nothing there, otherwise the version
-- that must be there), and its version and value if it puts (those that put come first); for each append its log and its
-- entry. Answers for each commit 1, or the positions of its appends, or {write counted from 0, version found or "-"} if
-- a condition does not hold; and if the store's format is another, only that.
local prefix = KEYS[1]
local format = redis.call('GET', prefix .. 'format')
if format ~= '1' then
  return format or ''
end
local values, answers, at = prefix .. 'value:', {}, 2
for n = 1, tonumber(ARGV[1]) do
  local writes, appends, answer = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), 1
  local first, refused = at + 2, false
  at = first
  for write = 0, writes - 1 do
    local expected = ARGV[at + 2]
    if expected ~= '*' and not refused then
      local current = redis.call('HGET', values .. ARGV[at], 'v') or '-'
      if current ~= expected then
        answer, refused = {write, current}, true
      end
    end
    at = at + (ARGV[at + 1] == '1' and 5 or 3)
  end
  if not refused then
    local write = first
    for _ = 1, writes do
      local key, effect = ARGV[write], ARGV[write + 1]
      if effect == '1' then
        -- If there is no memory, the first command that needs some is refused: this one, before anything is changed.
        if redis.call('HSET', values .. key, 'v', ARGV[write + 3], 'd', ARGV[write + 4]) == 2 then
          redis.call('ZADD', prefix .. 'keys', 0, key)
        end
        write = write + 5
      else
        if effect == '2' and redis.call('DEL', values .. key) == 1 then
          redis.call('ZREM', prefix .. 'keys', key)
        end
        write = write + 3
      end
    end
    if appends > 0 then
      answer = {}
      for append = at, at + appends * 2 - 2, 2 do
        local log = ARGV[append]
        local position = redis.call('HINCRBY', prefix .. 'logs', log, 1)
        redis.call('XADD', prefix .. 'log:' .. log, string.format('%.0f-0', position), 'd', ARGV[append + 1])
        answer[#answer + 1] = position
      end
    end
  end
  answers[n] = answer
  at = at + appends * 2
end
return answers
