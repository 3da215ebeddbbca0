#pragma once

#include "base/error.hpp"
#include "egress/audit/post.hpp"
#include "net/task.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace opensandbox::egress {

struct WebhookSettings {
    std::string url;  ///< http or https, may have a query
    std::string sandbox_id;
    std::chrono::milliseconds timeout{5000};  ///< of one attempt
    /// Before each attempt but the first.
    std::vector<std::chrono::milliseconds> pauses{std::chrono::milliseconds(1000),
                                                  std::chrono::milliseconds(2000),
                                                  std::chrono::milliseconds(4000)};
    ConnectOrigin connect = connect_plainly;
    std::size_t queue = 256;
    /// Within this time a target is told of once (an addition to the contract).
    std::chrono::seconds once_in{60};
};

/// Tells a URL of denials (network contract 1.7): one after another; below 300 is success, 300 to
/// 499 gives up, all else is tried again. One event loop.
class DenialWebhook {
  public:
    struct Counts {
        std::uint64_t delivered = 0;
        std::uint64_t failed = 0;
        std::uint64_t dropped = 0;   ///< the queue was full
        std::uint64_t repeated = 0;  ///< told of shortly before
    };

    /// `invalid_argument` for what is no URL.
    static Result<std::unique_ptr<DenialWebhook>> make(asio::any_io_executor executor,
                                                       WebhookSettings settings);
    ~DenialWebhook();
    DenialWebhook(const DenialWebhook&) = delete;
    DenialWebhook& operator=(const DenialWebhook&) = delete;

    /// A name or an address; never waits.
    void tell(std::string_view target, std::chrono::system_clock::time_point time);
    [[nodiscard]] const Counts& counts() const;

  private:
    struct State;
    explicit DenialWebhook(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

/// What is sent: `{"hostname","timestamp","source":"opensandbox-egress","sandboxId"}`. Pure.
std::string webhook_body(std::string_view target, std::chrono::system_clock::time_point time,
                         std::string_view sandbox_id);

}  // namespace opensandbox::egress
