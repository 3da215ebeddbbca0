#include "agent/code/drivers/interpreter.hpp"

#include "net/task.hpp"

#include <boost/asio/post.hpp>
#include <sys/socket.h>

#include <array>
#include <signal.h>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kReadSize = std::size_t{16} * 1024;
/// Pieces of unwanted output dropped in one turn of the event loop.
constexpr int kPiecesPerTurn = 8;
constexpr std::chrono::milliseconds kPoll{5};

}  // namespace

Interpreter::Interpreter(asio::any_io_executor executor, std::unique_ptr<net::Stream> control,
                         OutputPipe output, OutputPipe error)
    : executor_(executor),
      control_(std::move(control)),
      output_(std::make_shared<OutputPipe>(std::move(output))),
      error_(std::make_shared<OutputPipe>(std::move(error))) {}

Interpreter::~Interpreter() {
    kill();
    for (const auto& pipe : {output_, error_}) {
        // Two: ours and the loop's. A run that is still being read keeps its own.
        if (pipe.use_count() == 2) pipe->discard_rest();
    }
}

Result<std::shared_ptr<Interpreter>> Interpreter::start(asio::any_io_executor executor,
                                                        Reaper& reaper, SpawnRequest request) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return Error::from_errno(errno, "make a control channel");
    }
    UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    UniqueFd output_end;
    UniqueFd error_end;
    Result<OutputPipe> output = OutputPipe::open(executor, output_end);
    if (!output) return output.error();
    Result<OutputPipe> error = OutputPipe::open(executor, error_end);
    if (!error) return error.error();
    auto control = net::adopt_stream(executor, std::move(ours));
    if (!control) return control.error();
    request.standard_output = output_end.get();
    request.standard_error = error_end.get();
    request.passed.insert(request.passed.begin(), theirs.get());
    Result<pid_t> pid = spawn(request);
    if (!pid) return pid.error();
    auto interpreter = std::make_shared<Interpreter>(executor, std::move(*control),
                                                     std::move(*output), std::move(*error));
    interpreter->watch(reaper, *pid);
    return interpreter;
}

Result<std::shared_ptr<Interpreter>> Interpreter::adopt(asio::any_io_executor executor,
                                                        Reaper& reaper, WarmInterpreter warm) {
    WarmInterpreter::Parts parts = warm.release();
    auto control = net::adopt_stream(executor, std::move(parts.control));
    if (!control) return control.error();
    auto interpreter = std::make_shared<Interpreter>(
        executor, std::move(*control), OutputPipe::adopt(executor, std::move(parts.output), {}),
        OutputPipe::adopt(executor, std::move(parts.error), {}));
    interpreter->watch(reaper, parts.pid);
    return interpreter;
}

void Interpreter::watch(Reaper& reaper, pid_t pid) {
    child_ = reaper.watch(pid);
    hold_.emplace(reaper, child_);
    child_->on_exit([weak = weak_from_this(), executor = executor_] {
        if (auto self = weak.lock()) self->control_->cancel_read();
        // Not within the reaper's own work.
        asio::post(executor, [weak] {
            auto self = weak.lock();
            if (!self) return;
            self->child_->signal_group(SIGKILL);
            self->hold_.reset();
        });
    });
}

Awaitable<Status> Interpreter::send(ControlFrame::Kind kind, std::string payload) {
    auto self = shared_from_this();
    std::string header = ControlFrame::header(kind, payload.size());
    std::array<std::string_view, 2> pieces{header, payload};
    co_return co_await self->control_->write_all(pieces);
}

Awaitable<Result<ControlMessage>> Interpreter::next(std::string& state) {
    auto self = shared_from_this();
    auto buffer = std::make_unique_for_overwrite<char[]>(kReadSize);
    while (true) {
        Result<std::optional<ControlFrame>> frame = frames_.next();
        if (!frame) co_return frame.error();
        if (*frame) {
            if ((*frame)->kind == ControlFrame::Kind::message) {
                co_return parse_control_message((*frame)->payload);
            }
            state = std::move((*frame)->payload);
            continue;
        }
        // A copy of the other end may outlive the process: what it wrote counts, then its end does.
        if (ended() && control_->quiet()) co_return Error(ErrorCode::unavailable, "ended");
        auto got = co_await control_->read_some(std::span(buffer.get(), kReadSize));
        if (!got) {
            if (got.error().code() == ErrorCode::cancelled && ended()) continue;
            co_return Error(ErrorCode::unavailable, got.error().message());
        }
        if (*got == 0) co_return Error(ErrorCode::unavailable, "control channel closed");
        frames_.feed(std::string_view(buffer.get(), *got));
    }
}

std::shared_ptr<OutputPipe> Interpreter::lend(EventWriter::Stream kind, From from) {
    auto pipe = kind == EventWriter::Stream::standard_output ? output_ : error_;
    pipe->on_ready({});
    pipe->want_all();
    if (from == From::now) {
        pipe->limit_to_present();
        auto buffer = std::make_unique_for_overwrite<char[]>(kReadSize);
        while (!pipe->ended())
            pipe->read(std::span(buffer.get(), kReadSize));
        pipe->want_all();
    }
    return {pipe.get(), [pipe, loan = ++loans_, weak = weak_from_this()](OutputPipe*) {
                auto self = weak.lock();
                if (!self) {
                    pipe->discard_rest();
                } else if (loan + 2 > self->loans_) {
                    // No later run has it.
                    self->drop_output(pipe);
                }
            }};
}

void Interpreter::drop_output(const std::shared_ptr<OutputPipe>& pipe) {
    pipe->want_all();
    pipe->on_ready([raw = pipe.get()] {
        std::array<char, kReadSize> dropped;
        for (int i = 0; i < kPiecesPerTurn; ++i) {
            if (raw->read(dropped) == 0) break;
        }
        raw->arm();
    });
    pipe->arm();
}

std::string Interpreter::pending_error() {
    std::string text(4096, '\0');
    error_->read_again();
    text.resize(error_->holds_bytes() ? error_->read(text) : 0);
    return text;
}

void Interpreter::kill() {
    if (hold_) child_->signal_group(SIGKILL);
}

Awaitable<std::string> Interpreter::wait_end(std::chrono::milliseconds grace) {
    auto self = shared_from_this();
    auto limit = std::chrono::steady_clock::now() + grace;
    while (!ended()) {
        if (std::chrono::steady_clock::now() >= limit) kill();
        co_await net::sleep_for(kPoll);
    }
    co_return child_->status()->describe();
}

}  // namespace opensandbox::agent
