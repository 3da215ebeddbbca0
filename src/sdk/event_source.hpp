#pragma once

#include "opensandbox/commands.hpp"
#include "sdk/transport.hpp"

namespace opensandbox::sdk {

/// Sends a request that an event stream answers.
Awaitable<Result<EventStream>> open_events(Transport& transport, std::shared_ptr<const Route> agent,
                                           Call call);

/// Reads the events of a command to their end. `bad_gateway` when they end without a terminal one.
Awaitable<Result<Execution>> run_to_end(EventStream stream, OutputHandlers handlers);

}  // namespace opensandbox::sdk
