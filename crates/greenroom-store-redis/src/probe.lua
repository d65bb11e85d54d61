-- Uses every command of the other scripts on one key of its own, so that a user who may not is told now and not in the
-- middle of a commit. KEYS[1] is the store's prefix.
local key = KEYS[1] .. 'probe'
redis.call('DEL', key)
redis.call('HSET', key, 'v', '', 'd', '')
redis.call('HGET', key, 'v')
redis.call('HMGET', key, 'v', 'd')
redis.call('HINCRBY', key, 'n', 1)
redis.call('DEL', key)
redis.call('ZADD', key, 0, 'a')
redis.call('ZRANGEBYLEX', key, '-', '+', 'LIMIT', 0, 1)
redis.call('ZREM', key, 'a')
redis.call('XADD', key, '1-0', 'd', '')
redis.call('XRANGE', key, '-', '+', 'COUNT', 1)
redis.call('XTRIM', key, 'MINID', '2-0')
redis.call('DEL', key)
redis.call('SET', KEYS[1] .. 'format', '1', 'NX')
return redis.call('GET', KEYS[1] .. 'format')
