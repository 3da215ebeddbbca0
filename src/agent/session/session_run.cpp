#include "agent/session/session_run.hpp"

#include "agent/command/execution.hpp"
#include "base/unique_fd.hpp"

#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <signal.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

/// A file that only its holders can see, read from its beginning.
Result<UniqueFd> hidden_file(std::string_view content) {
    UniqueFd file(::memfd_create("session", MFD_CLOEXEC));
    if (!file) return Error::from_errno(errno, "make a file in memory");
    while (!content.empty()) {
        ssize_t put = ::write(file.get(), content.data(), content.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return Error::from_errno(errno, "write the session's program");
        content.remove_prefix(static_cast<std::size_t>(put));
    }
    if (::lseek(file.get(), 0, SEEK_SET) != 0) return Error::from_errno(errno, "lseek");
    return file;
}

}  // namespace

SessionRun::SessionRun(asio::any_io_executor executor, const std::string& session,
                       SessionRequest request, LineForm form)
    : executor_(executor),
      request_(std::move(request)),
      pump_(std::make_shared<EventPump>(executor, session, form)) {}

SessionRun::~SessionRun() {
    release_outputs();
}

Status SessionRun::open_outputs(SpawnRequest& shell, std::array<UniqueFd, 3>& ends) {
    Result<OutputPipe> output = OutputPipe::open(executor_, ends[0]);
    if (!output) return output.error();
    Result<OutputPipe> error = OutputPipe::open(executor_, ends[1]);
    if (!error) return error.error();
    auto on_state = [weak = weak_from_this()] {
        if (auto self = weak.lock()) self->read_state();
    };
    Result<OutputPipe> state = OutputPipe::open(executor_, ends[2], on_state);
    if (!state) return state.error();
    output_ = std::make_shared<OutputPipe>(std::move(*output));
    error_ = std::make_shared<OutputPipe>(std::move(*error));
    state_pipe_.emplace(std::move(*state));
    shell.standard_output = ends[0].get();
    shell.standard_error = ends[1].get();
    return {};
}

Status SessionRun::start(Reaper& reaper, SpawnRequest shell, std::string_view program,
                         std::function<void()> on_exit) {
    Result<UniqueFd> file = hidden_file(program);
    if (!file) return file.error();
    std::array<UniqueFd, 3> ends;
    if (Status opened = open_outputs(shell, ends); !opened) return opened;
    shell.passed = {file->get(), ends[2].get()};
    Result<pid_t> pid = spawn(shell);
    if (!pid) return pid.error();
    child_ = reaper.watch(*pid);
    pump_->attach(EventWriter::Stream::standard_output, output_);
    pump_->attach(EventWriter::Stream::standard_error, error_);
    state_pipe_->arm();
    if (request_.timeout.count() > 0) arm_timeout();
    child_->on_exit([weak = weak_from_this(), on_exit = std::move(on_exit)] {
        auto self = weak.lock();
        if (!self) return;
        self->timeout_.reset();
        // The shell wrote all before it ended: what is left is in the pipe.
        self->state_pipe_->limit_to_present();
        while (!self->state_pipe_->ended())
            self->read_state();
        self->state_pipe_.reset();
        on_exit();
    });
    return {};
}

void SessionRun::arm_timeout() {
    timeout_.emplace(executor_, request_.timeout, [weak = weak_from_this()] {
        auto self = weak.lock();
        if (!self) return;
        std::string limit = std::to_string(self->request_.timeout.count());
        self->kill({"CommandExecError", "124", {"timeout: ran longer than " + limit + " ms"}});
    });
}

void SessionRun::kill(RunEnd why) {
    if (!child_ || child_->status() || killed_) return;
    killed_ = std::move(why);
    child_->signal_group(SIGKILL);
}

void SessionRun::read_state() {
    std::array<char, 64 * 1024> piece;
    std::size_t size = state_pipe_->read(piece);
    if (state_.size() + size > kMaxState) {
        too_large_ = true;
        state_ = std::string();
    }
    // Read on all the same: the shell must not wait for us.
    if (!too_large_) state_.append(piece.data(), size);
    state_pipe_->arm();
}

std::optional<ShellState> SessionRun::take_state(std::string_view mark) {
    std::string bytes = std::exchange(state_, {});
    if (killed_ || child_->status()->signal != 0) return std::nullopt;
    return read_shell_state(bytes, mark);
}

void SessionRun::say(std::string_view line) {
    pump_->post(
        [&](EventWriter& events) { events.output(EventWriter::Stream::standard_error, line); });
}

void SessionRun::end() {
    pump_->end(killed_ ? *killed_ : end_of(*child_->status()));
}

void SessionRun::release_outputs() {
    for (auto* pipe : {&output_, &error_}) {
        if (*pipe) (*pipe)->discard_rest();
        pipe->reset();
    }
}

}  // namespace opensandbox::agent
