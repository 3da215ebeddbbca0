#include "agent/pty/process.hpp"

#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <signal.h>
#include <string>
#include <termios.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr TerminalSize kFirstSize{80, 24};
/// More than a terminal's buffers hold: a survivor that writes on and on must not delay the end.
constexpr std::size_t kMaxDrain = std::size_t{512} * 1024;

Result<UniqueFd> duplicate(int fd) {
    UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy) return Error::from_errno(errno, "duplicate the terminal");
    return copy;
}

constexpr int kTerminalFlags = O_RDWR | O_NOCTTY | O_CLOEXEC;

UniqueFd open_master() {
    UniqueFd master(::open("/dev/ptmx", kTerminalFlags | O_NONBLOCK));
    // Images without the link, or with a device node that a user namespace cannot open.
    if (!master) master.reset(::open("/dev/pts/ptmx", kTerminalFlags | O_NONBLOCK));
    return master;
}

/// By descriptor, which needs no path; else by number.
UniqueFd open_slave(int master) {
    UniqueFd slave(::ioctl(master, TIOCGPTPEER, kTerminalFlags));
    unsigned number = 0;
    if (!slave && ::ioctl(master, TIOCGPTN, &number) == 0) {
        slave.reset(::open(("/dev/pts/" + std::to_string(number)).c_str(), kTerminalFlags));
    }
    return slave;
}

}  // namespace

Result<Terminal> open_terminal(TerminalSize size) {
    Terminal terminal;
    terminal.master = open_master();
    if (!terminal.master) return Error::from_errno(errno, "open a pseudo-terminal");
    int locked = 0;
    if (::ioctl(terminal.master.get(), TIOCSPTLCK, &locked) != 0) {
        return Error::from_errno(errno, "unlock the pseudo-terminal");
    }
    terminal.slave = open_slave(terminal.master.get());
    if (!terminal.slave) return Error::from_errno(errno, "open the pseudo-terminal's other end");
    termios settings{};
    if (::tcgetattr(terminal.slave.get(), &settings) == 0) {
        // Erasing a character erases all of its bytes.
        settings.c_iflag |= IUTF8;
        ::tcsetattr(terminal.slave.get(), TCSANOW, &settings);
    }
    if (Status sized = resize_terminal(terminal.master.get(), size); !sized) return sized.error();
    return terminal;
}

Status resize_terminal(int master, TerminalSize size) {
    winsize window{};
    window.ws_col = size.columns;
    window.ws_row = size.rows;
    if (::ioctl(master, TIOCSWINSZ, &window) != 0) {
        return Error::from_errno(errno, "resize the terminal");
    }
    return {};
}

Result<std::shared_ptr<PtyProcess>> PtyProcess::start(const asio::any_io_executor& executor,
                                                      Reaper& reaper, SpawnRequest request,
                                                      Mode mode, std::function<void()> changed) {
    auto process = std::make_shared<PtyProcess>(mode, std::move(changed));
    std::vector<UniqueFd> theirs;
    Status connected = mode == Mode::terminal ? process->connect_terminal(executor, request, theirs)
                                              : process->connect_pipes(executor, request, theirs);
    if (!connected) return connected.error();
    Result<pid_t> pid = spawn(request);
    if (!pid) return pid.error();
    process->child_ = reaper.watch(*pid);
    process->child_->on_exit([weak = std::weak_ptr(process)] {
        auto self = weak.lock();
        if (self) self->changed_();
    });
    return process;
}

PtyProcess::~PtyProcess() {
    if (mode_ == Mode::terminal) return;  // closing the terminal hangs up on survivors
    for (Output& output : outputs_)
        output.pipe.discard_rest();
}

Status PtyProcess::connect_terminal(const asio::any_io_executor& executor, SpawnRequest& request,
                                    std::vector<UniqueFd>& theirs) {
    Result<Terminal> terminal = open_terminal(kFirstSize);
    if (!terminal) return terminal.error();
    Result<UniqueFd> reader = duplicate(terminal->master.get());
    if (!reader) return reader.error();
    Result<UniqueFd> writer = duplicate(terminal->master.get());
    if (!writer) return writer.error();
    // A shell of another user may open its terminal by name.
    if (request.credentials) {
        [[maybe_unused]] int done =
            ::fchown(terminal->slave.get(), request.credentials->uid, static_cast<gid_t>(-1));
    }
    master_ = std::move(terminal->master);
    input_ = std::make_unique<InputQueue>(executor, std::move(*writer));
    outputs_.emplace_back(EventWriter::Stream::standard_output,
                          OutputPipe::adopt(executor, std::move(*reader), changed_));
    request.standard_input = terminal->slave.get();
    request.standard_output = terminal->slave.get();
    request.standard_error = terminal->slave.get();
    request.controlling_terminal = true;
    theirs.push_back(std::move(terminal->slave));
    return {};
}

Status PtyProcess::connect_pipes(const asio::any_io_executor& executor, SpawnRequest& request,
                                 std::vector<UniqueFd>& theirs) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::from_errno(errno, "make a pipe");
    theirs.emplace_back(ends[0]);
    input_ = std::make_unique<InputQueue>(executor, UniqueFd(ends[1]));
    request.standard_input = theirs.back().get();
    for (auto kind : {EventWriter::Stream::standard_output, EventWriter::Stream::standard_error}) {
        UniqueFd write_end;
        Result<OutputPipe> pipe = OutputPipe::open(executor, write_end, changed_);
        if (!pipe) return pipe.error();
        outputs_.emplace_back(kind, std::move(*pipe));
        bool first = kind == EventWriter::Stream::standard_output;
        (first ? request.standard_output : request.standard_error) = write_end.get();
        theirs.push_back(std::move(write_end));
    }
    return {};
}

bool PtyProcess::read(Replay& kept, std::span<char> buffer) {
    if (ended() && !draining_) begin_drain();
    bool any = false;
    for (Output& output : outputs_) {
        bool to_drain = draining_ && mode_ == Mode::terminal;
        if (to_drain && left_ > 0) output.pipe.read_again();
        if (!output.pipe.ready()) continue;
        std::size_t count = output.pipe.read(buffer);
        kept.append(output.kind, std::string_view(buffer.data(), count));
        any = any || count > 0;
        if (to_drain) left_ = count > 0 && count < left_ ? left_ - count : 0;
    }
    return any;
}

void PtyProcess::begin_drain() {
    draining_ = true;
    left_ = kMaxDrain;
    if (mode_ == Mode::terminal) return;
    for (Output& output : outputs_)
        output.pipe.limit_to_present();
}

void PtyProcess::arm() {
    for (Output& output : outputs_)
        output.pipe.arm();
}

bool PtyProcess::drained() const {
    if (!draining_) return false;
    for (const Output& output : outputs_) {
        bool nothing_left = mode_ == Mode::terminal && left_ == 0;
        if (!nothing_left && !output.pipe.ended()) return false;
    }
    return true;
}

void PtyProcess::signal(int number) const {
    if (ended()) return;
    pid_t job = foreground_job();
    if (job > 0) ::kill(-job, number);
    if (job > 0 && (number == SIGINT || number == SIGQUIT)) return;
    child_->signal_group(number);
}

/// The group in the foreground when it is another one than the shell's and of the same session.
pid_t PtyProcess::foreground_job() const {
    pid_t group = 0;
    if (!master_ || ::ioctl(master_.get(), TIOCGPGRP, &group) != 0) return 0;
    if (group <= 0 || group == child_->pid() || ::getsid(group) != child_->pid()) return 0;
    return group;
}

void PtyProcess::resize(TerminalSize size) const {
    if (master_) (void)resize_terminal(master_.get(), size);
}

}  // namespace opensandbox::agent
