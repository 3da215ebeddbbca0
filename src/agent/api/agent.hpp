#pragma once

#include "agent/code/drivers/warm_interpreter.hpp"
#include "agent/ground/publish.hpp"
#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace opensandbox::agent {

class LogFile;

/// How one agent runs. Source: execd contract sections 1.1 and 11.
struct AgentOptions {
    /// A socket that already listens (native slots); when empty, `host`:`port` is bound.
    UniqueFd listener;
    /// Ports that are published elsewhere.
    std::vector<Publication> publications;
    /// "::" takes IPv4 connections, too; where the kernel has no IPv6 it means 0.0.0.0.
    std::string host = "::";
    std::uint16_t port = 44772;
    /// Required of every request in X-EXECD-ACCESS-TOKEN; empty turns the check off.
    std::string access_token;
    /// Environment of the entrypoint and of commands; nothing else is inherited.
    std::vector<std::pair<std::string, std::string>> environment;
    /// Directory in which the entrypoint and commands start; "/" when empty or missing.
    std::string working_directory;
    /// User of entrypoint and commands.
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    /// Jupyter server for code contexts; used when both are set (execd contract 5.2). When empty,
    /// JUPYTER_HOST and JUPYTER_TOKEN of `environment`.
    std::string jupyter_host;
    std::string jupyter_token;
    /// Act as init: own `entrypoint`, reap orphans, end with the entrypoint's code.
    bool init = false;
    std::vector<std::string> entrypoint;
    /// The entrypoint writes to the agent's own standard output and error (a container's log)
    /// instead of into the agent's memory.
    bool inherit_output = false;
    /// Where the last part of the entrypoint's output is kept otherwise: an empty file, open for
    /// writing (agent/stream/output_log.hpp). Without one it is dropped.
    UniqueFd output_log;
    /// Commands that run before the entrypoint and again and again: the JSON of
    /// OPENSANDBOX_LIFECYCLE (lifecycle 2.1), by default that of `environment`.
    std::string hooks;
    /// Interpreters that wait for the first code of their language.
    std::vector<WarmInterpreter> warm;
    /// Kept within its size while the agent runs; may be empty.
    std::shared_ptr<LogFile> log_file;
    /// TOML file with the settings of isolated sessions (execd contract 9); empty: defaults.
    std::string isolation_config;
    /// A borrowed socket to ask for a process that makes the namespaces of isolated sessions, where
    /// this one may not (isolated/broker_link.hpp); -1: it makes them itself.
    int isolation_host = -1;
    /// Called once, when the socket accepts and the entrypoint was started, or with the reason why
    /// it could not be; the agent then ends.
    std::function<void(const Status&)> on_ready;
};

/// Runs the agent until its entrypoint ends (init) or SIGTERM; returns the exit code. The calling
/// process must have no other threads. Never throws.
int run(AgentOptions options);

}  // namespace opensandbox::agent
