#pragma once

#include "opensandbox/error.hpp"
#include "opensandbox/pool_store.hpp"

#include <string>
#include <string_view>

namespace opensandbox::sdk {

/// The wire codes of the published SDKs' pools.
inline constexpr std::string_view kPoolEmpty = "POOL_EMPTY";
inline constexpr std::string_view kPoolAcquireFailed = "POOL_ACQUIRE_FAILED";
inline constexpr std::string_view kPoolNotRunning = "POOL_NOT_RUNNING";
inline constexpr std::string_view kPoolDestroyed = "POOL_DESTROYED";
inline constexpr std::string_view kPoolDestroyIncomplete = "POOL_DESTROY_INCOMPLETE";
inline constexpr std::string_view kPoolStoreUnavailable = "POOL_STATE_STORE_UNAVAILABLE";

inline Error pool_error(ErrorCode code, std::string_view wire_code, std::string message) {
    return {code, 0, std::string(wire_code), std::move(message), {}};
}

inline Error destroyed_error(const std::string& pool, PoolDestroyState state) {
    return pool_error(ErrorCode::conflict, kPoolDestroyed,
                      "the pool '" + pool + "' is " + std::string(to_string(state)));
}

}  // namespace opensandbox::sdk
