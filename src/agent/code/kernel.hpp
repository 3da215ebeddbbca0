#pragma once

#include "agent/stream/event_pump.hpp"
#include "base/error.hpp"
#include "net/stream.hpp"

#include <memory>
#include <string>

namespace opensandbox::agent {

/// What executes the code of one context: a built-in interpreter driver or a kernel of a Jupyter
/// server. Functions run on the event loop and never block it.
class Kernel {
  public:
    virtual ~Kernel() = default;

    /// Runs code and makes its events through the pump: outputs (attached pipes or posted events),
    /// `execution_count`, `result`; then pump->end(). Returns when the run is over. Called once at
    /// a time; the pump may lose its reader and the run goes on. A failure before anything ran (the
    /// interpreter died, the server does not answer) comes back as an error and leaves the pump
    /// without an end.
    virtual Awaitable<Status> run(std::string code, std::shared_ptr<EventPump> pump) = 0;
    /// Interrupts the run in flight, as Ctrl-C would; does nothing when there is none.
    virtual Awaitable<Status> interrupt() = 0;
    /// Ends it and all it started, or deletes it at the server.
    virtual Awaitable<Status> shut_down() = 0;
    /// Whether another run can be tried.
    [[nodiscard]] virtual bool alive() const = 0;
};

/// Makes kernels, and finds those that outlived a former agent.
class KernelProvider {
  public:
    virtual ~KernelProvider() = default;

    struct Started {
        std::string id;  ///< of the context
        std::shared_ptr<Kernel> kernel;
    };
    /// A new context. `not_found` when the language is not installed, with a message that names
    /// what was looked for.
    virtual Awaitable<Result<Started>> start(std::string language, std::string cwd) = 0;

    struct Found {
        std::string id;
        std::string language;
        std::shared_ptr<Kernel> kernel;
    };
    /// Contexts that exist although this agent did not make them.
    virtual Awaitable<Result<std::vector<Found>>> recover() = 0;
};

}  // namespace opensandbox::agent
