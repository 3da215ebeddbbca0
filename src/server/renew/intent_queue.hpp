#pragma once

#include "redis/client.hpp"
#include "server/config/config.hpp"
#include "server/renew/access_renewer.hpp"

#include <functional>
#include <memory>
#include <set>

namespace opensandbox::server {

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
