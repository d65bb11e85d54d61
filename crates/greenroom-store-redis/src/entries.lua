-- Entries of a log. KEYS[1] is the log's stream; ARGV: the first position, most entries, most bytes.
-- Answers position and entry of each.
local bytes_max = tonumber(ARGV[3])
local answer, bytes = {}, 0
local from, left = ARGV[1] .. '-0', tonumber(ARGV[2])
while left > 0 and bytes < bytes_max do
  -- Few at a time, as their sizes are not known.
  local found = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', math.min(left, 50))
  for _, entry in ipairs(found) do
    if bytes < bytes_max then
      answer[#answer + 1] = entry[1]
      answer[#answer + 1] = entry[2][2]
      bytes = bytes + #entry[2][2]
      from = '(' .. entry[1]
    end
  end
  left = #found == math.min(left, 50) and left - #found or 0
end
return answer
