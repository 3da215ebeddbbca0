#pragma once

#include "agent/command/registry.hpp"
#include "agent/process/spawn.hpp"
#include "net/stream.hpp"

#include <chrono>
#include <memory>

namespace opensandbox::agent {

/// Starts a command whose output, both streams interleaved, goes to the record's file. Its end is
/// recorded by itself; after `timeout` (0: never) its group is killed. On failure the record says
/// why.
Status start_background(asio::any_io_executor executor, Reaper& reaper, CommandRegistry& registry,
                        const std::shared_ptr<CommandRecord>& record, SpawnRequest request,
                        std::chrono::milliseconds timeout);

/// Ends a running command: SIGTERM to its group, after 3 s SIGKILL; returns when the group is gone,
/// 500 ms after SIGKILL at the latest. `internal` when it does not run (execd contract 3.5).
Awaitable<Status> interrupt(asio::any_io_executor executor, Reaper& reaper,
                            std::shared_ptr<CommandRecord> record);

}  // namespace opensandbox::agent
