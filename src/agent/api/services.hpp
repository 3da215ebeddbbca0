#pragma once

#include "agent/api/agent.hpp"
#include "agent/code/contexts.hpp"
#include "agent/code/drivers/provider.hpp"
#include "agent/command/registry.hpp"
#include "agent/files/file_pool.hpp"
#include "agent/isolated/broker_link.hpp"
#include "agent/isolated/isolation.hpp"
#include "agent/metrics/sampler.hpp"
#include "agent/process/process_context.hpp"
#include "agent/pty/session.hpp"
#include "agent/session/session.hpp"
#include "agent/telemetry/telemetry.hpp"
#include "http/client.hpp"

namespace opensandbox::agent {

/// What the routes of one agent share. Lives as long as its event loop.
struct Services {
    Services(asio::any_io_executor loop, const AgentOptions& agent_options);

    asio::any_io_executor executor;
    const AgentOptions& options;
    Environment environment;  ///< of the entrypoint and, below the file and the request, commands
    Reaper reaper;
    bool stopping = false;     ///< streams without an end of their own end now
    ProcessContext processes;  ///< of what is above
    CommandRegistry commands;
    PtySessions terminals;
    SessionTable sessions;
    FilePool files;
    std::size_t file_watches = 0;  ///< streams of /files/watch
    Isolation isolation;
    Sampler metrics;
    http::Client loopback;  ///< to the services of the sandbox, for /proxy
    BrokerLink broker;
    Telemetry telemetry;
    DriverProvider drivers;
    CodeContexts code;
};

}  // namespace opensandbox::agent
