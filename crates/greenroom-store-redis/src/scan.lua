-- A page of items. KEYS[1] is the store's prefix; ARGV: bounds as ZRANGEBYLEX takes them, most items, most bytes.
-- Answers whether another item follows, then key, version and value of each.
local prefix, limit, bytes_max = KEYS[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local keys = redis.call('ZRANGEBYLEX', prefix .. 'keys', ARGV[1], ARGV[2], 'LIMIT', 0, limit + 1)
local answer, bytes = {0}, 0
for n, key in ipairs(keys) do
  if n > limit or bytes >= bytes_max then
    answer[1] = 1
    break
  end
  local item = redis.call('HMGET', prefix .. 'value:' .. key, 'v', 'd')
  bytes = bytes + #key + #item[2]
  answer[#answer + 1] = key
  answer[#answer + 1] = item[1]
  answer[#answer + 1] = item[2]
end
return answer
