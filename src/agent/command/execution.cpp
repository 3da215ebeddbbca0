#include "agent/command/execution.hpp"

#include <signal.h>

namespace opensandbox::agent {

Result<pid_t> spawn_into(EventPump& pump, asio::any_io_executor executor, SpawnRequest& request,
                         std::shared_ptr<OutputPipe>& output, std::shared_ptr<OutputPipe>& error) {
    UniqueFd output_end;
    UniqueFd error_end;
    Result<OutputPipe> output_pipe = OutputPipe::open(executor, output_end);
    if (!output_pipe) return output_pipe.error();
    Result<OutputPipe> error_pipe = OutputPipe::open(executor, error_end);
    if (!error_pipe) return error_pipe.error();
    request.standard_output = output_end.get();
    request.standard_error = error_end.get();
    Result<pid_t> pid = spawn(request);
    if (!pid) return pid;
    output = std::make_shared<OutputPipe>(std::move(*output_pipe));
    error = std::make_shared<OutputPipe>(std::move(*error_pipe));
    pump.attach(EventWriter::Stream::standard_output, output);
    pump.attach(EventWriter::Stream::standard_error, error);
    return pid;
}

RunEnd end_of(const ExitStatus& status) {
    if (status.success()) return {};
    return {"CommandExecError", std::to_string(status.client_code()), {status.describe()}};
}

Execution::Execution(asio::any_io_executor executor, const std::string& id, LineForm form)
    : executor_(executor), pump_(std::make_shared<EventPump>(executor, id, form, kKept)) {}

Execution::~Execution() {
    release_outputs();
}

std::shared_ptr<Execution> Execution::start(asio::any_io_executor executor, Reaper& reaper,
                                            CommandRegistry& registry,
                                            const std::shared_ptr<CommandRecord>& record,
                                            SpawnRequest request, LineForm form,
                                            std::chrono::milliseconds timeout) {
    auto execution = std::make_shared<Execution>(executor, record->id, form);
    record->execution = execution;
    if (Status launched = execution->launch(reaper, registry, record, request); !launched) {
        const std::string reason = launched.error().message();
        execution->pump_->end({"CommandExecError", reason, {reason}});
        registry.failed(record, reason);
    } else if (timeout.count() > 0) {
        execution->timeout_.emplace(executor, timeout,
                                    [child = execution->child_] { child->signal_group(SIGKILL); });
    }
    return execution;
}

Status Execution::launch(Reaper& reaper, CommandRegistry& registry,
                         const std::shared_ptr<CommandRecord>& record, SpawnRequest& request) {
    Result<pid_t> pid = spawn_into(*pump_, executor_, request, output_, error_);
    if (!pid) return pid.error();
    child_ = reaper.watch(*pid);
    registry.started(record, child_);
    child_->on_exit([weak = weak_from_this()] {
        if (auto self = weak.lock()) self->pump_->end(end_of(*self->child_->status()));
    });
    return {};
}

Awaitable<void> Execution::stream(std::shared_ptr<Execution> execution, http::Exchange& exchange,
                                  std::uint64_t offset) {
    bool complete = co_await EventPump::stream(execution->pump_, exchange, offset);
    if (complete) {
        execution->release_outputs();
    } else {
        // The reader is gone: the command runs on by itself (execd contract 3.2).
        net::spawn(execution->executor_, run_unread(execution), "command without a reader");
    }
}

Awaitable<void> Execution::run_unread(std::shared_ptr<Execution> execution) {
    co_await EventPump::run_unread(execution->pump_);
    if (execution->pump_->finished()) execution->release_outputs();
}

void Execution::release_outputs() {
    for (auto* pipe : {&output_, &error_}) {
        if (*pipe) (*pipe)->discard_rest();
        pipe->reset();
    }
    timeout_.reset();
}

}  // namespace opensandbox::agent
