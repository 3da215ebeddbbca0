#pragma once

#include "opensandbox/commands.hpp"
#include "opensandbox/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace opensandbox::sdk {

/// An interpreter that keeps what earlier runs defined.
struct CodeContext {
    std::string id;
    std::string language;
    std::string working_directory;  ///< only as create() returns it
};

/// Code to run: in the context `context_id`, or else in the default context of `language`.
struct CodeRequest {
    CodeRequest() = default;
    CodeRequest(std::string text, std::string in_language)
        : code(std::move(text)), language(std::move(in_language)) {}
    std::string code;
    std::string context_id;
    std::string language;
};

/// What a run of code gave.
struct CodeExecution {
    std::string context_id;
    std::string output;        ///< standard output
    std::string error_output;  ///< standard error
    /// What the code displayed and the value of its last expression, each by media type ("text" is
    /// text/plain).
    std::vector<std::vector<std::pair<std::string, std::string>>> results;
    std::optional<ExecutionError> error;  ///< what the code raised
};

/// The code contexts of one sandbox (python, javascript, typescript, bash, java, go). Cheap to
/// copy.
class Code {
  public:
    /// Returns when the interpreter is ready. `working_directory` is made when it is missing;
    /// empty: the agent's own.
    boost::asio::awaitable<Result<CodeContext>> create_context(
        std::string language, std::string working_directory = {}) const;
    /// Those of the language; all when it is empty.
    boost::asio::awaitable<Result<std::vector<CodeContext>>> contexts(
        std::string language = {}) const;
    boost::asio::awaitable<Result<CodeContext>> context(std::string id) const;
    /// Kills the interpreter and all that it has started.
    boost::asio::awaitable<Status> remove_context(std::string id) const;
    boost::asio::awaitable<Status> remove_contexts(std::string language) const;

    /// Starts a run and hands out its events; the text of the first, `init`, is the context's id.
    /// An `error` event is what the code raised. The last is `error` or `execution_complete`.
    boost::asio::awaitable<Result<EventStream>> stream(CodeRequest request) const;
    /// Runs code to its end. That it raised something is no Error: see CodeExecution::error.
    boost::asio::awaitable<Result<CodeExecution>> run(CodeRequest request) const;
    /// As Ctrl-C does to the run of a context; an interpreter that does not heed it within five
    /// seconds is killed.
    boost::asio::awaitable<Status> interrupt(std::string context_id) const;

  private:
    friend class Sandbox;
    Code(std::shared_ptr<Transport> transport, std::shared_ptr<const Route> agent);
    std::shared_ptr<Transport> transport_;
    std::shared_ptr<const Route> agent_;
};

}  // namespace opensandbox::sdk
