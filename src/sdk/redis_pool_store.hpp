#pragma once

#include <string>
#include <string_view>

namespace opensandbox::sdk {

/// "prefix:{tag}:suffix"; the tag keeps all keys of a pool in one slot of a cluster and is the
/// unpadded URL-safe base64 of the pool's name.
std::string redis_pool_key(std::string_view prefix, std::string_view pool, std::string_view suffix);

}  // namespace opensandbox::sdk

/// What the Redis store does in one step, in Lua. Keys and values are those of the published SDKs
/// (clients 2), so that all can share a pool: a list of idle ids, oldest first; a hash of
/// their expiries in milliseconds since the epoch, by Redis's clock; the lock's owner; settings as
/// decimal text; the state of destruction.
namespace opensandbox::sdk::redis_script {

/// KEYS list, expiries; ARGV remaining. Returns {id or '', {discarded…}}.
inline constexpr const char* kTake = R"lua(
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local discarded = {}
local id = redis.call('LPOP', KEYS[1])
while id do
  local expiry = tonumber(redis.call('HGET', KEYS[2], id) or '')
  redis.call('HDEL', KEYS[2], id)
  if expiry and expiry > now + ARGV[1] then return {id, discarded} end
  if expiry and expiry > now then discarded[#discarded + 1] = id end
  id = redis.call('LPOP', KEYS[1])
end
return {'', discarded})lua";

/// KEYS list, expiries, destruction; ARGV id, time to live. Returns 1 put, 0 known, -1 refused.
inline constexpr const char* kPut = R"lua(
if redis.call('EXISTS', KEYS[3]) == 1 then return -1 end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local known = redis.call('HGET', KEYS[2], ARGV[1])
if known and tonumber(known) > now then return 0 end
if not known then redis.call('RPUSH', KEYS[1], ARGV[1]) end
redis.call('HSET', KEYS[2], ARGV[1], string.format('%.0f', now + ARGV[2]))
return 1)lua";

/// KEYS list, expiries; ARGV id.
inline constexpr const char* kRemove = R"lua(
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('LREM', KEYS[1], 0, ARGV[1]))lua";

/// KEYS list, expiries; ARGV remaining. Returns the ids taken out that still live.
inline constexpr const char* kReap = R"lua(
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local alive = {}
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  local expiry = tonumber(all[i + 1]) or 0
  if expiry <= now + ARGV[1] then
    redis.call('HDEL', KEYS[2], all[i])
    redis.call('LREM', KEYS[1], 0, all[i])
    if expiry > now then alive[#alive + 1] = all[i] end
  end
end
return alive)lua";

/// KEYS lock, destruction; ARGV owner, time to live. Returns 1 when the owner has it now.
inline constexpr const char* kLock = R"lua(
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1)lua";

/// The same, for who has it already.
inline constexpr const char* kRenew = R"lua(
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2]))lua";

/// KEYS lock; ARGV owner.
inline constexpr const char* kRelease = R"lua(
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1]))lua";

/// KEYS list, expiries. Returns {id, expiry, …} in the order of the list.
inline constexpr const char* kEntries = R"lua(
local entries = {}
for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  local expiry = redis.call('HGET', KEYS[2], id)
  if expiry then
    entries[#entries + 1] = id
    entries[#entries + 1] = expiry
  end
end
return entries)lua";

/// KEYS setting, destruction; ARGV value. Returns 1, or -1 when refused.
inline constexpr const char* kSet = R"lua(
if redis.call('EXISTS', KEYS[2]) == 1 then return -1 end
redis.call('SET', KEYS[1], ARGV[1])
return 1)lua";

/// KEYS destruction, its owner; ARGV owner. Returns 1, or -1 when all is over already.
inline constexpr const char* kBeginDestroy = R"lua(
if redis.call('GET', KEYS[1]) == 'DESTROYED' then return -1 end
redis.call('SET', KEYS[1], 'DESTROYING')
redis.call('SET', KEYS[2], ARGV[1])
return 1)lua";

/// KEYS destruction, its owner; ARGV owner, milliseconds to keep (0: for ever).
inline constexpr const char* kMarkDestroyed = R"lua(
local values = {'DESTROYED', ARGV[1]}
for i = 1, 2 do
  if ARGV[2] == '0' then
    redis.call('SET', KEYS[i], values[i])
  else
    redis.call('SET', KEYS[i], values[i], 'PX', ARGV[2])
  end
end
return 1)lua";

}  // namespace opensandbox::sdk::redis_script
