#include "agent/command/execution.hpp"

#include "base/clock.hpp"
#include "http/event_stream.hpp"

#include <algorithm>
#include <signal.h>

namespace opensandbox::agent {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kReadSize = std::size_t{64} * 1024;
constexpr std::chrono::seconds kPingEvery{3};
constexpr std::chrono::milliseconds kFragmentAfter{100};

}  // namespace

Execution::Execution(asio::any_io_executor executor, std::shared_ptr<CommandRecord> record,
                     LineForm form)
    : executor_(executor),
      record_(std::move(record)),
      started_(steady_clock::now()),
      next_ping_(started_ + kPingEvery),
      output_(EventWriter::Stream::standard_output, form),
      error_(EventWriter::Stream::standard_error, form),
      wake_(std::make_shared<net::Event>(executor)) {}

std::shared_ptr<Execution> Execution::start(asio::any_io_executor executor, Reaper& reaper,
                                            CommandRegistry& registry,
                                            std::shared_ptr<CommandRecord> record,
                                            SpawnRequest request, LineForm form,
                                            std::chrono::milliseconds timeout) {
    auto execution = std::make_shared<Execution>(executor, std::move(record), form);
    if (Status launched = execution->launch(reaper, registry, request); !launched) {
        execution->start_error_ = launched.error().message();
        registry.failed(execution->record_, execution->start_error_);
    } else if (timeout.count() > 0) {
        execution->timeout_.emplace(executor, timeout,
                                    [child = execution->child_] { child->signal_group(SIGKILL); });
    }
    return execution;
}

Status Execution::launch(Reaper& reaper, CommandRegistry& registry, SpawnRequest& request) {
    auto wake = [event = wake_] { event->notify(); };
    UniqueFd output_end;
    UniqueFd error_end;
    Result<OutputPipe> output = OutputPipe::open(executor_, output_end, wake);
    if (!output) return output.error();
    Result<OutputPipe> error = OutputPipe::open(executor_, error_end, wake);
    if (!error) return error.error();
    request.standard_output = output_end.get();
    request.standard_error = error_end.get();
    Result<pid_t> pid = spawn(request);
    if (!pid) return pid.error();
    output_.pipe.emplace(std::move(*output));
    error_.pipe.emplace(std::move(*error));
    child_ = reaper.watch(*pid);
    registry.started(record_, child_);
    child_->on_exit([weak = weak_from_this()] {
        auto self = weak.lock();
        if (!self) return;
        self->output_.pipe->limit_to_present();
        self->error_.pipe->limit_to_present();
        self->wake_->notify();
    });
    return {};
}

Awaitable<void> Execution::stream(std::shared_ptr<Execution> execution, http::Exchange& exchange) {
    Execution& self = *execution;
    self.events_.at(to_millis(now()));
    self.events_.init(self.record_->id);
    self.events_.ping();
    Status sent = co_await exchange.start(http::event_stream_head());
    while (sent) {
        if (!self.events_.empty()) {
            sent = co_await exchange.write(self.events_.buffer());
            self.events_.clear();
            if (!sent) break;
        }
        self.do_timed_work();
        self.collect(true);
        if (self.finished()) {
            self.write_end();
            sent = co_await exchange.write(self.events_.buffer());
            if (sent) sent = co_await exchange.finish();
            self.release_outputs();
            co_return;
        }
        if (self.events_.empty()) co_await self.wait_for_more();
    }
    // The reader is gone: the command runs on by itself (contract 3.2).
    net::spawn(self.executor_, drop_output(execution), "command without a reader");
}

Awaitable<void> Execution::drop_output(std::shared_ptr<Execution> execution) {
    Execution& self = *execution;
    while (!self.finished()) {
        self.collect(false);
        if (self.arm_outputs()) continue;
        if (!self.finished()) co_await self.wake_->wait();
    }
    self.release_outputs();
}

void Execution::collect(bool encode) {
    if (encode) events_.at(to_millis(now()));
    for (Output* output : {&output_, &error_}) {
        if (output->pipe && output->pipe->ready()) take(*output, encode);
    }
}

void Execution::take(Output& from, bool encode) {
    // The buffer exists from the first byte on: most commands say little and end.
    if (buffer_.empty()) buffer_.resize(kReadSize);
    std::size_t size = from.pipe->read(buffer_);
    if (!encode) return;
    auto emit = [&](std::string_view text) { events_.output(from.kind, text); };
    if (size > 0) {
        from.last_byte = steady_clock::now();
        from.splitter.feed(std::string_view(buffer_).substr(0, size), emit);
    }
    if (from.pipe->ended()) from.splitter.finish(emit);
}

bool Execution::finished() const {
    if (!child_) return true;
    return child_->status() && output_.pipe->ended() && error_.pipe->ended();
}

void Execution::write_end() {
    events_.at(to_millis(now()));
    for (Output* output : {&output_, &error_}) {
        output->splitter.finish([&](std::string_view text) { events_.output(output->kind, text); });
    }
    if (!child_) {
        events_.error("CommandExecError", start_error_, {start_error_});
    } else if (ExitStatus status = *child_->status(); !status.success()) {
        events_.error("CommandExecError", std::to_string(status.client_code()),
                      {status.describe()});
    } else {
        auto taken = steady_clock::now() - started_;
        events_.complete(std::chrono::duration_cast<std::chrono::milliseconds>(taken).count());
    }
}

bool Execution::arm_outputs() {
    bool ready = false;
    for (Output* output : {&output_, &error_}) {
        if (!output->pipe) continue;
        ready = ready || output->pipe->ready();
        output->pipe->arm();
    }
    return ready;
}

Awaitable<void> Execution::wait_for_more() {
    if (arm_outputs()) co_return;
    auto due = next_ping_;
    for (Output* output : {&output_, &error_}) {
        if (!output->splitter.has_fragment()) continue;
        due = std::min(due, output->last_byte + kFragmentAfter);
    }
    auto left = due - steady_clock::now();
    if (left.count() > 0) co_await wake_->wait_for(left);
}

void Execution::do_timed_work() {
    auto time = steady_clock::now();
    if (time >= next_ping_) {
        events_.at(to_millis(now()));
        events_.ping();
        next_ping_ = time + kPingEvery;
    }
    for (Output* output : {&output_, &error_}) {
        if (!output->splitter.has_fragment() || time < output->last_byte + kFragmentAfter) continue;
        events_.at(to_millis(now()));
        output->splitter.flush_idle(
            [&](std::string_view text) { events_.output(output->kind, text); });
    }
}

void Execution::release_outputs() {
    for (Output* output : {&output_, &error_}) {
        if (output->pipe) std::move(*output->pipe).discard_rest();
        output->pipe.reset();
    }
    timeout_.reset();
}

}  // namespace opensandbox::agent
