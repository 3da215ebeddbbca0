#pragma once

#include "base/error.hpp"
#include "model/quota.hpp"
#include "net/stream.hpp"
#include "server/config/config.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace opensandbox::server {

/// Where the keys of several tenants are known (lifecycle 7.3). One event loop.
class Tenants {
  public:
    virtual ~Tenants() = default;

    /// The namespace of the tenant whose key this is. `unauthenticated` when it is nobody's,
    /// `unavailable` when that cannot be known now.
    virtual Awaitable<Result<std::string>> authenticate(std::string key) = 0;
    /// What that tenant may have at once.
    [[nodiscard]] virtual model::Quota quota(std::string_view space) const = 0;
    /// Ends background work.
    virtual void stop() = 0;
};

/// From a file that is watched, or asking a service (`tenants.provider`). Fails when the file
/// cannot be read or the endpoint is no URL. The configuration is borrowed.
Result<std::shared_ptr<Tenants>> make_tenants(asio::any_io_executor executor, const Config& config);

/// SHA-256 of a key: what is kept and compared instead of the key.
std::string key_digest(std::string_view key);

/// 1 to 253 characters of `a-z`, digits, `-` and `.`: what a namespace may be.
bool is_namespace(std::string_view text);

}  // namespace opensandbox::server
