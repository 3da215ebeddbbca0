#pragma once

#include "lifecycle/lifecycle.hpp"

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace opensandbox::server {

/// Lets sandboxes that are used live longer (lifecycle 8): those created with the extension
/// `access.renew.extend.seconds` get at least that long from each use. Renewals of one sandbox
/// follow one another; uses that come while one runs are served by it. One event loop.
class AccessRenewer : public std::enable_shared_from_this<AccessRenewer> {
  public:
    AccessRenewer(asio::any_io_executor executor, std::shared_ptr<lifecycle::Lifecycle> lifecycle,
                  std::chrono::seconds min_interval);

    /// A request came through this server's proxy. Costs nothing when the last renewal is younger
    /// than the interval.
    void used(std::string_view sandbox_id, const lifecycle::AgentAccess& agent);
    /// A gateway says so; returns when it was dealt with. Not held to the interval: gateways are.
    Awaitable<void> reported(std::string sandbox_id, std::string tenant);

  private:
    using Clock = std::chrono::steady_clock;
    struct Entry {
        std::string id;
        Clock::time_point renewed;
        bool once = false;  ///< `renewed` says something
        bool running = false;
    };
    using Entries = std::list<Entry>;

    Entry& entry_of(std::string_view id);
    Awaitable<void> renew(std::string id, std::chrono::seconds by, std::string source);
    static Awaitable<void> renew_detached(std::shared_ptr<AccessRenewer> self, std::string id,
                                          std::chrono::seconds by);

    asio::any_io_executor executor_;
    std::shared_ptr<lifecycle::Lifecycle> lifecycle_;
    std::chrono::seconds min_interval_;
    Entries entries_;  ///< used last in front
    std::unordered_map<std::string_view, Entries::iterator> by_id_;
};

}  // namespace opensandbox::server
