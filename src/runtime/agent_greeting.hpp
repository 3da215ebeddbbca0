#pragma once

#include "http/client.hpp"
#include "model/endpoints.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace opensandbox::runtime {

/// What came of waiting for an agent.
enum class Greeting : std::uint8_t {
    ready,     ///< it answers
    ended,     ///< its container ended before
    stranger,  ///< another agent answers there, which refuses the token
    timed_out,
};

/// Asks `GET /ping` at each address in turn, in steps of milliseconds, until one answers or `ended`
/// says that there is nobody to wait for.
Awaitable<Greeting> await_agent(http::Client& client, std::vector<model::AgentAddress> addresses,
                                std::string token, std::function<bool()> ended,
                                std::chrono::milliseconds limit);

/// Asks `GET <path>` with one field every `step` until the answer is a success; gives up when
/// `ended` says so.
Awaitable<bool> await_success(http::Client& client, model::AgentAddress address, std::string path,
                              http::Fields fields, std::function<bool()> ended,
                              std::chrono::milliseconds step, std::chrono::milliseconds limit);

/// For these: short waits, no kept connections.
http::ClientOptions probe_options();

}  // namespace opensandbox::runtime
