#include "agent/code/drivers/warm_interpreter.hpp"

#include "agent/code/drivers/control_frame.hpp"
#include "agent/code/drivers/driver.hpp"
#include "agent/process/spawn.hpp"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include <utility>

namespace opensandbox::agent {
namespace {

using Clock = std::chrono::steady_clock;

/// Read when a program starts, or by what it loads then.
bool counts_at_start(std::string_view name) {
    constexpr std::string_view kNames[] = {"PATH", "HOME", "LANG", "LANGUAGE", "TZ"};
    constexpr std::string_view kPrefixes[] = {"PYTHON", "LD_", "LC_", "GLIBC_", "MALLOC_"};
    return std::ranges::find(kNames, name) != std::end(kNames) ||
           std::ranges::any_of(kPrefixes, [&](auto p) { return name.starts_with(p); }) ||
           name.ends_with("_NUM_THREADS");
}

std::vector<std::string_view> fixed_entries(const std::vector<std::string>& entries) {
    std::vector<std::string_view> out;
    for (const std::string& entry : entries) {
        if (counts_at_start(std::string_view(entry).substr(0, entry.find('=')))) {
            out.emplace_back(entry);
        }
    }
    std::ranges::sort(out);
    return out;
}

struct PipeEnds {
    UniqueFd read_end;
    UniqueFd write_end;
};

Result<PipeEnds> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::from_errno(errno, "make a pipe");
    PipeEnds out{UniqueFd(ends[0]), UniqueFd(ends[1])};
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return out;
}

std::string frame(ControlFrame::Kind kind, std::string_view payload) {
    return ControlFrame::header(kind, payload.size()) + std::string(payload);
}

}  // namespace

bool can_take_on(const std::vector<std::string>& before, const std::vector<std::string>& after) {
    return fixed_entries(before) == fixed_entries(after);
}

std::string environment_payload(const std::vector<std::string>& entries) {
    std::string out;
    for (const std::string& entry : entries) {
        out += entry;
        out += '\0';
    }
    return out;
}

WarmInterpreter::WarmInterpreter(WarmInterpreter&& other) noexcept {
    *this = std::move(other);
}

WarmInterpreter& WarmInterpreter::operator=(WarmInterpreter&& other) noexcept {
    if (this == &other) return *this;
    kill();
    language_ = std::move(other.language_);
    environment_ = std::move(other.environment_);
    parts_ = std::exchange(other.parts_, Parts());
    return *this;
}

WarmInterpreter::~WarmInterpreter() {
    kill();
}

void WarmInterpreter::kill() {
    if (parts_.pid == 0) return;
    ::kill(-parts_.pid, SIGKILL);
    ::waitpid(parts_.pid, nullptr, 0);
    parts_ = Parts();
}

WarmInterpreter::Parts WarmInterpreter::release() {
    return std::exchange(parts_, Parts());
}

bool WarmInterpreter::alive() const {
    siginfo_t info{};
    return parts_.pid != 0 &&
           ::waitid(P_PID, static_cast<id_t>(parts_.pid), &info, WEXITED | WNOHANG | WNOWAIT) ==
               0 &&
           info.si_pid == 0;
}

Result<WarmInterpreter> WarmInterpreter::start(const model::WarmProgram& program,
                                               const Place& place,
                                               std::chrono::milliseconds limit) {
    const Driver* driver = find_driver(program.language);
    if (!driver) return Error(ErrorCode::not_found, "unknown language: " + program.language);
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return Error::from_errno(errno, "make a control channel");
    }
    WarmInterpreter warm;
    warm.parts_.control.reset(ends[0]);
    UniqueFd theirs(ends[1]);
    auto output = make_pipe();
    if (!output) return output.error();
    auto error = make_pipe();
    if (!error) return error.error();
    SpawnRequest request;
    request.programs = driver->programs(place.environment.get("PATH"));
    request.environment = place.environment.entries();
    request.directory = place.directory;
    request.standard_output = output->write_end.get();
    request.standard_error = error->write_end.get();
    request.passed = {theirs.get()};
    if (place.uid != ::geteuid() || place.gid != ::getegid()) {
        request.credentials = credentials_for(place.uid, place.gid);
    }
    auto pid = spawn(request);
    if (!pid) {
        return pid.error().within(program.language + " (" + std::string(driver->looked_for) + ")");
    }
    warm.parts_.pid = *pid;
    warm.parts_.output = std::move(output->read_end);
    warm.parts_.error = std::move(error->read_end);
    warm.language_ = program.language;
    warm.environment_ = std::move(request.environment);
    theirs.reset();
    output->write_end.reset();
    error->write_end.reset();
    ::fcntl(warm.parts_.control.get(), F_SETFL, O_NONBLOCK);
    if (auto loaded = warm.load(program, Clock::now() + limit); !loaded) {
        return loaded.error().within(program.language);
    }
    return warm;
}

Status WarmInterpreter::load(const model::WarmProgram& program, Clock::time_point deadline) {
    const Driver& driver = *find_driver(program.language);
    std::string frames;
    for (std::string_view text : {driver.program, driver.library}) {
        if (!text.empty()) frames += frame(ControlFrame::Kind::program, text);
    }
    if (auto booted = exchange(frames, deadline); !booted) return booted;
    if (program.imports.empty()) return {};
    std::string names;
    for (const std::string& name : program.imports)
        names += name + "\n";
    return exchange(frame(ControlFrame::Kind::modules, names), deadline);
}

namespace {

/// Both ends of a conversation with an interpreter that is starting, without an event loop.
class Conversation {
  public:
    Conversation(const WarmInterpreter::Parts& parts, std::string_view frames)
        : frames_(frames),
          items_{{{parts.control.get(), POLLIN | POLLOUT, 0},
                  {parts.output.get(), POLLIN, 0},
                  {parts.error.get(), POLLIN, 0}}} {}

    /// What the interpreter says next.
    Result<ControlMessage> next(Clock::time_point deadline) {
        while (true) {
            auto frame = reader_.next();
            if (!frame) return frame.error();
            if (*frame && (*frame)->kind == ControlFrame::Kind::message)
                return parse_control_message((*frame)->payload);
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
            if (left.count() <= 0) return Error(ErrorCode::timeout, "did not become ready in time");
            if (::poll(items_.data(), items_.size(), static_cast<int>(left.count())) <= 0) continue;
            drop_output(items_[1]);
            drop_output(items_[2]);
            if ((items_[0].revents & POLLOUT) != 0) send();
            if ((items_[0].revents & ~POLLOUT) != 0 && !receive()) {
                return Error(ErrorCode::internal,
                             "the interpreter ended" + (said_.empty() ? said_ : ": " + said_));
            }
        }
    }

  private:
    /// So that it does not block; the last of its errors is kept.
    void drop_output(pollfd& item) {
        if (item.fd < 0 || item.revents == 0) return;
        const ssize_t got = ::read(item.fd, buffer_.data(), buffer_.size());
        if (got > 0 && &item == &items_[2])
            said_.assign(buffer_.data(), static_cast<std::size_t>(got));
        if (got == 0) item.fd = -1;
    }

    void send() {
        const ssize_t sent = ::send(items_[0].fd, frames_.data(), frames_.size(), MSG_NOSIGNAL);
        if (sent > 0) frames_.remove_prefix(static_cast<std::size_t>(sent));
        // That nobody listens shows in what is read.
        if (frames_.empty() || (sent < 0 && errno != EAGAIN)) items_[0].events = POLLIN;
    }

    bool receive() {
        const ssize_t got = ::read(items_[0].fd, buffer_.data(), buffer_.size());
        if (got < 0) return errno == EAGAIN || errno == EINTR;
        reader_.feed(std::string_view(buffer_.data(), static_cast<std::size_t>(got)));
        return got > 0;
    }

    std::string_view frames_;
    std::array<pollfd, 3> items_;
    std::array<char, 4096> buffer_{};
    ControlFrameReader reader_;
    std::string said_;
};

}  // namespace

Status WarmInterpreter::exchange(std::string_view frames, Clock::time_point deadline) {
    Conversation conversation(parts_, frames);
    auto message = conversation.next(deadline);
    if (!message) return message.error();
    if (message->type == ControlMessage::Type::ready) return {};
    return Error(ErrorCode::not_found, message->end.name + ": " + message->end.value);
}

}  // namespace opensandbox::agent
