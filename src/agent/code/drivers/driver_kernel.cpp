#include "agent/code/drivers/driver_kernel.hpp"

#include "net/task.hpp"

#include <signal.h>

namespace opensandbox::agent {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kSecondInterrupt{1};
constexpr std::chrono::seconds kInterruptGrace{4};
constexpr std::chrono::seconds kDriverKillGrace{2};
/// From the closed control channel to the end of the process.
constexpr std::chrono::milliseconds kEndGrace{500};
constexpr std::chrono::milliseconds kDriverPoll{5};

}  // namespace

Awaitable<Status> DriverKernel::run(std::string code, std::shared_ptr<EventPump> pump) {
    if (Status ready = co_await ensure_interpreter(pump); !ready) co_return ready;
    auto interpreter = interpreter_;
    pump->attach(EventWriter::Stream::standard_output,
                 interpreter->lend(EventWriter::Stream::standard_output));
    pump->attach(EventWriter::Stream::standard_error,
                 interpreter->lend(EventWriter::Stream::standard_error));
    interrupted_ = false;
    running_ = true;
    // A failure to send shows as the end of the interpreter.
    co_await interpreter->send(ControlFrame::Kind::run, std::move(code));
    RunEnd end = co_await follow(interpreter, pump);
    running_ = false;
    ++run_number_;
    if (end.failed) pump->post([](EventWriter& events) { events.status("error"); });
    pump->end(std::move(end));
    co_return Status();
}

Awaitable<Status> DriverKernel::ensure_interpreter(std::shared_ptr<EventPump> pump) {
    if (shut_down_) co_return Error(ErrorCode::not_found, "the context was deleted");
    if (interpreter_ && interpreter_->ended()) {
        lost_ = interpreter_->child()->status()->describe();
        interpreter_.reset();
    }
    if (interpreter_) co_return Status();
    std::string state = std::move(state_);
    state_.clear();
    auto started = co_await launch_(std::move(state));
    if (!started) co_return started.error();
    interpreter_ = std::move(*started);
    if (lost_.empty()) co_return Status();
    std::string notice = "[the " + language_ + " interpreter had ended (" + lost_ +
                         "); this is a fresh one, what it held is gone]\n";
    lost_.clear();
    pump->post(
        [&](EventWriter& events) { events.output(EventWriter::Stream::standard_error, notice); });
    co_return Status();
}

Awaitable<RunEnd> DriverKernel::follow(std::shared_ptr<Interpreter> interpreter,
                                       std::shared_ptr<EventPump> pump) {
    RunEnd end;
    while (true) {
        Result<ControlMessage> next = co_await interpreter->next(state_);
        if (!next) co_return co_await died(interpreter, next.error());
        const ControlMessage& message = *next;
        switch (message.type) {
            case ControlMessage::Type::ready: break;
            case ControlMessage::Type::display:
                pump->post([&](EventWriter& events) { events.result(message.mime); });
                break;
            case ControlMessage::Type::result:
                pump->post([&](EventWriter& events) {
                    events.execution_count(message.count);
                    events.result(message.mime);
                });
                break;
            case ControlMessage::Type::error: end = message.end; break;
            case ControlMessage::Type::done:
                if (message.leaving) interpreter_.reset();
                // A shell that an interrupt ends cannot tell why it ends.
                if (message.leaving && interrupted_ && !end.failed) {
                    end = RunEnd("KeyboardInterrupt", "the run was interrupted",
                                 {"signal: interrupt"});
                }
                co_return end;
        }
        co_await pump->room();
    }
}

Awaitable<RunEnd> DriverKernel::died(std::shared_ptr<Interpreter> interpreter, Error reason) {
    if (reason.code() == ErrorCode::protocol) interpreter->kill();
    lost_ = co_await interpreter->wait_end(kEndGrace);
    if (reason.code() == ErrorCode::protocol) lost_ = reason.message();
    if (stubborn_) lost_ = "killed, as the interrupt did not end the run";
    stubborn_ = false;
    interpreter_.reset();
    state_.clear();
    std::string value = "the " + language_ + " interpreter ended (" + lost_ +
                        "); the next run starts a fresh one, without what this one held";
    co_return RunEnd("InterpreterDied", value, {"InterpreterDied: " + value});
}

Awaitable<bool> DriverKernel::run_ends_within(std::uint64_t number,
                                              std::chrono::milliseconds limit) const {
    auto end = steady_clock::now() + limit;
    while (running_ && run_number_ == number) {
        if (steady_clock::now() >= end) co_return false;
        co_await net::sleep_for(kDriverPoll);
    }
    co_return true;
}

Awaitable<Status> DriverKernel::interrupt() {
    auto interpreter = interpreter_;
    if (!running_ || !interpreter) co_return Status();
    std::uint64_t number = run_number_;
    interrupted_ = true;
    interpreter->child()->signal_group(SIGINT);
    if (co_await run_ends_within(number, kSecondInterrupt)) co_return Status();
    // The first one may have come before the driver had begun.
    interpreter->child()->signal_group(SIGINT);
    if (co_await run_ends_within(number, kInterruptGrace)) co_return Status();
    stubborn_ = true;
    interpreter->kill();
    co_await run_ends_within(number, kDriverKillGrace);
    co_return Status();
}

Awaitable<Status> DriverKernel::shut_down() {
    shut_down_ = true;
    auto interpreter = interpreter_;
    if (!interpreter) co_return Status();
    interpreter->kill();
    co_await interpreter->wait_end(kEndGrace);
    interpreter_.reset();
    co_return Status();
}

}  // namespace opensandbox::agent
