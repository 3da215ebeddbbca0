#pragma once

#include <string>
#include <string_view>

namespace opensandbox::sdk {

/// "prefix:{tag}:suffix"; the tag keeps all keys of a pool in one slot of a cluster and is the
/// unpadded URL-safe base64 of the pool's name.
std::string redis_pool_key(std::string_view prefix, std::string_view pool, std::string_view suffix);

}  // namespace opensandbox::sdk
