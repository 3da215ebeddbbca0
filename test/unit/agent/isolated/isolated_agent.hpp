#pragma once

#include "unit/agent/agent_process.hpp"

#include <optional>
#include <string>

namespace opensandbox::agent::testing {

/// An agent whose uppers and allowed directories lie in a scratch directory.
class IsolatedAgent {
  public:
    /// `more` is appended to the configuration.
    explicit IsolatedAgent(const std::string& more = {});
    IsolatedAgent(const IsolatedAgent&) = delete;
    IsolatedAgent& operator=(const IsolatedAgent&) = delete;
    ~IsolatedAgent();

    [[nodiscard]] const Scratch& scratch() const { return scratch_; }
    [[nodiscard]] std::string workspace() const { return scratch_.at("ws"); }
    /// Not below /tmp, which the balanced profile shares.
    [[nodiscard]] const std::string& uppers() const { return uppers_; }
    [[nodiscard]] AgentProcess& agent() { return *agent_; }
    /// A second agent with the same configuration, after the first one's end.
    void restart();

    /// Creates a session with its workspace in `mode`; `more` are further members. Returns the id.
    std::string session(const std::string& mode, const std::string& more = {});
    Reply create(const std::string& json);
    /// Runs to the end; `more` are further members of the body.
    std::vector<StreamEvent> run(const std::string& session, const std::string& code,
                                 const std::string& more = {});
    /// What the code wrote to standard output.
    std::string output(const std::string& session, const std::string& code);
    Reply call(const std::string& method, const std::string& session, const std::string& rest,
               const std::string& body = {});

  private:
    Scratch scratch_;
    std::string uppers_;
    std::string configuration_;
    std::optional<AgentProcess> agent_;
};

/// Exit code that the terminal event carries; -1000 when there is no such event.
int exit_code(const std::vector<StreamEvent>& events);

/// A string member of a JSON object; empty when there is none.
std::string member(const std::string& json, const std::string& name);

/// Processes of this machine whose command line holds `mark`.
int processes_with(const std::string& mark);

}  // namespace opensandbox::agent::testing
