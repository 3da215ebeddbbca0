#pragma once

#include "base/clock.hpp"
#include "redis/client.hpp"
#include "server/config/config.hpp"
#include "server/renew/access_renewer.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace opensandbox::server {

/// What a gateway pushes when a sandbox is used (lifecycle 8).
struct RenewIntent {
    std::string sandbox_id;
    Timestamp observed_at{};
    std::string tenant;  ///< `namespace`; empty when it is not given
};

/// Older ones say nothing about now.
inline constexpr std::chrono::seconds kIntentLifetime{300};

/// `{"sandbox_id", "observed_at", "port"?, "request_uri"?, "namespace"?}`; empty for what is
/// malformed, older than 300 s, or longer than 64 KiB. Pure.
std::optional<RenewIntent> parse_renew_intent(std::string_view payload, Timestamp now);

/// Takes intents of gateways off a Redis list (lifecycle 8) with several workers, each over a
/// connection of its own. While Redis is away they keep trying; renewal by the proxy goes on.
class IntentQueue : public std::enable_shared_from_this<IntentQueue> {
  public:
    IntentQueue(asio::any_io_executor executor, std::shared_ptr<AccessRenewer> renewer,
                redis::Address address, const RenewConfig& config);

    void start();
    /// Ends the workers; an intent already taken is still served.
    void stop();

  private:
    static Awaitable<void> work(std::shared_ptr<IntentQueue> self);
    Awaitable<void> consume(redis::Client& client);

    asio::any_io_executor executor_;
    std::shared_ptr<AccessRenewer> renewer_;
    redis::Address address_;
    std::string key_;
    std::int64_t workers_;
    std::set<redis::Client*> connected_;
    bool told_connected_ = false;
    bool told_lost_ = false;
    bool stopped_ = false;
};

}  // namespace opensandbox::server
