#pragma once

#include "base/error.hpp"
#include "opensandbox/connection.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::mcp {

struct Options {
    bool over_http = false;
    std::string host = "127.0.0.1";
    std::uint16_t port = 8000;
    std::string auth_token;                    ///< empty: none is asked for
    std::vector<std::string> allowed_origins;  ///< besides this machine's own
    bool allow_unauthenticated = false;
    std::size_t max_sessions = 100;
    std::chrono::seconds session_idle{1800};
    std::size_t max_calls = 32;  ///< of one session at a time
    std::size_t max_output = std::size_t{64} << 10U;
    sdk::ConnectionOverrides server;
    bool help = false;
};

/// Reads a variable of the environment.
using Variable = std::function<std::optional<std::string>(std::string_view name)>;

/// `invalid_argument` naming the option and what it accepts.
Result<Options> parse_options(std::span<const std::string_view> words, const Variable& variable);

extern const std::string_view kHelp;

}  // namespace opensandbox::mcp
