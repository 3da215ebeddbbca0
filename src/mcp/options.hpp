#pragma once

#include "base/error.hpp"
#include "opensandbox/connection.hpp"
#include "options/line_reader.hpp"

#include <chrono>
#include <span>
#include <string>
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

/// `invalid_argument` naming the option and what it accepts.
Result<Options> parse_options(std::span<const std::string> words,
                              const options::Variable& variable);

std::string help();

}  // namespace opensandbox::mcp
