#pragma once

#include "unit/agent/agent_process.hpp"

#include <string>
#include <thread>
#include <vector>

namespace opensandbox::agent::testing {

/// What the events of one run say.
struct CodeRun {
    std::string id;                    ///< of the context
    std::string output;                ///< all of stdout
    std::string errors;                ///< all of stderr
    std::vector<std::string> results;  ///< MIME maps
    std::string text;                  ///< text of the last result
    std::int64_t count = 0;            ///< execution_count
    std::string name;                  ///< of the error
    std::string value;
    std::vector<std::string> trace;
    std::string last;  ///< type of the last event

    [[nodiscard]] bool complete() const { return last == "execution_complete"; }
    [[nodiscard]] std::string traced() const;
};
CodeRun parse_run(const std::string& body);

/// The environment of the tests' own process, in which the interpreters are.
AgentOptions with_own_environment();

/// POST /code in a context, to its end.
CodeRun run_code(const AgentProcess& agent, const std::string& id, const std::string& code);
/// POST /code in the default context of a language, to its end.
CodeRun run_default(const AgentProcess& agent, const std::string& language,
                    const std::string& code);
/// The body of POST /code.
std::string code_request(const std::string& id, const std::string& language,
                         const std::string& code);
/// POST /code/context; the id.
std::string make_context(const AgentProcess& agent, const std::string& language,
                         const std::string& cwd = {});

/// A run in the background of the test: begins when its first output was seen.
class RunningCode {
  public:
    RunningCode(const AgentProcess& agent, const std::string& id, const std::string& code,
                const std::string& until);
    /// Reads to the end of the stream.
    CodeRun finish();

  private:
    RawConnection connection_;
    std::string seen_;
};

}  // namespace opensandbox::agent::testing
