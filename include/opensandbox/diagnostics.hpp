#pragma once

#include "opensandbox/connection.hpp"
#include "opensandbox/error.hpp"
#include "opensandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::sdk {

/// Text about a sandbox, or where to get it.
struct DiagnosticContent {
    std::string sandbox_id;
    std::string kind;      ///< "logs" or "events"
    std::string scope;     ///< as the server understood it
    std::string delivery;  ///< "inline": in `content`; "url": at `content_url`
    std::string content_type;
    bool truncated = false;
    std::optional<std::string> content;
    std::optional<std::string> content_url;
    std::optional<std::int64_t> content_length;  ///< bytes
    std::optional<TimePoint> expires_at;         ///< of `content_url`
    std::optional<std::vector<std::string>> warnings;
};

/// What a server tells of a sandbox to find faults with. Cheap to copy.
class Diagnostics {
  public:
    explicit Diagnostics(Connection connection) : connection_(std::move(connection)) {}

    /// `scope`: "container", "all", or what else the server knows; `invalid_argument` otherwise.
    boost::asio::awaitable<Result<DiagnosticContent>> logs(std::string id, std::string scope) const;
    /// `scope`: "runtime", "all", or what else the server knows; `invalid_argument` otherwise.
    boost::asio::awaitable<Result<DiagnosticContent>> events(std::string id,
                                                             std::string scope) const;

    // Pages for people, as plain text.
    /// The last `tail` lines (1 to 10000) of the last `since` ("10m", "1h"; empty: all).
    boost::asio::awaitable<Result<std::string>> log_text(std::string id, unsigned tail = 100,
                                                         std::string since = {}) const;
    /// `limit`: 1 to 500 lines.
    boost::asio::awaitable<Result<std::string>> event_text(std::string id,
                                                           unsigned limit = 50) const;
    boost::asio::awaitable<Result<std::string>> inspect(std::string id) const;
    /// Inspection, `event_limit` lines (1 to 500) of events and `tail` lines (1 to 10000) of logs.
    boost::asio::awaitable<Result<std::string>> summary(std::string id, unsigned tail = 50,
                                                        unsigned event_limit = 20) const;

  private:
    Connection connection_;
};

}  // namespace opensandbox::sdk
