#pragma once

#include "agent/code/drivers/interpreter.hpp"
#include "agent/code/kernel.hpp"

#include <functional>

namespace opensandbox::agent {

/// A context run by an interpreter process of its own (issue: built-in drivers). When the process
/// ends, the run in flight ends with an error and the next run starts a fresh one.
class DriverKernel final : public Kernel {
  public:
    /// Starts an interpreter that is ready to run; `state` is what a former one left.
    using Launch =
        std::function<Awaitable<Result<std::shared_ptr<Interpreter>>>(std::string state)>;

    DriverKernel(std::string language, std::shared_ptr<Interpreter> interpreter, Launch launch)
        : language_(std::move(language)),
          interpreter_(std::move(interpreter)),
          launch_(std::move(launch)) {}

    Awaitable<Status> run(std::string code, std::shared_ptr<EventPump> pump) override;
    /// SIGINT to the group; when the run does not end within 5 s the interpreter is killed.
    Awaitable<Status> interrupt() override;
    Awaitable<Status> shut_down() override;
    [[nodiscard]] bool alive() const override { return !shut_down_; }

  private:
    Awaitable<Status> ensure_interpreter(std::shared_ptr<EventPump> pump);
    /// Reads what the driver says until the run is over.
    Awaitable<RunEnd> follow(std::shared_ptr<Interpreter> interpreter,
                             std::shared_ptr<EventPump> pump);
    Awaitable<RunEnd> died(std::shared_ptr<Interpreter> interpreter, Error reason);
    Awaitable<bool> run_ends_within(std::uint64_t number, std::chrono::milliseconds limit) const;

    std::string language_;
    std::shared_ptr<Interpreter> interpreter_;  ///< null when it has to be started again
    Launch launch_;
    std::string state_;
    std::string lost_;  ///< how the former interpreter ended, when it did so by itself
    std::uint64_t run_number_ = 0;
    bool running_ = false;
    bool interrupted_ = false;
    bool stubborn_ = false;  ///< killed because an interrupt did not help
    bool shut_down_ = false;
};

}  // namespace opensandbox::agent
