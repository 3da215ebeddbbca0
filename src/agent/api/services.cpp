#include "agent/api/services.hpp"

#include "agent/code/jupyter/provider.hpp"

namespace opensandbox::agent {
namespace {

Environment with_agent_variables(const AgentOptions& options) {
    Environment environment(options.environment);
    // The token opens the agent: what runs in the sandbox must not have it.
    environment.erase("EXECD_ACCESS_TOKEN");
    environment.erase("OPENSANDBOX_LIFECYCLE");
    return environment;
}

std::string temporary_directory(const AgentOptions& options) {
    std::string directory(Environment(options.environment).get("TMPDIR").value_or(""));
    return directory.starts_with('/') ? directory : "/tmp";
}

/// Null when no Jupyter server is configured.
std::unique_ptr<KernelProvider> jupyter_for(Services& services) {
    const AgentOptions& options = services.options;
    if (options.jupyter_host.empty() || options.jupyter_token.empty()) return nullptr;
    return make_jupyter_provider(services.executor, services.loopback, options.jupyter_host,
                                 options.jupyter_token);
}

}  // namespace

Services::Services(asio::any_io_executor loop, const AgentOptions& agent_options)
    : executor(loop),
      options(agent_options),
      environment(with_agent_variables(agent_options)),
      processes{loop, reaper, environment, {agent_options.uid, agent_options.gid}, stopping},
      commands(temporary_directory(agent_options)),
      terminals(processes),
      sessions(processes),
      files(loop),
      isolation(loop, reaper, files, temporary_directory(agent_options)),
      metrics(loop, environment),
      loopback(loop),
      broker(agent_options.isolation_host, loopback),
      telemetry(loop, environment, files, loopback),
      drivers(processes, files),
      code(loop, drivers, jupyter_for(*this)) {
    if (!telemetry.enabled()) return;
    commands.observe([this](const CommandRecord& record) {
        auto took = *record.finished_at - record.started_at;
        telemetry.execution("run_command", record.error.empty(), took);
    });
    sessions.observe([this](const SessionRun& run) {
        const EventPump& pump = *run.pump();
        telemetry.execution("run_in_session", !pump.failed(), pump.took());
    });
}

}  // namespace opensandbox::agent
