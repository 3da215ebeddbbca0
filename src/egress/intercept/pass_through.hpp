#pragma once

#include "egress/intercept/core/idle_watch.hpp"
#include "net/stream.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace opensandbox::egress {

/// Copies bytes both ways, untouched, until both sides have ended; the end of one is passed on.
/// `received` goes to the server first. A connection of which one side has ended lives `idle`
/// longer at most. `watch` must outlive the call.
Awaitable<void> pass_through(IdleWatch& watch, WatchedTarget target, std::chrono::milliseconds idle,
                             std::unique_ptr<net::Stream> client, std::string received,
                             std::unique_ptr<net::Stream> upstream);

}  // namespace opensandbox::egress
