#include "agent/process/reaper.hpp"

#include "base/unique_fd.hpp"

#include <sys/wait.h>

#include <charconv>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string_view>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

/// The words that Go's runtime has for signals: they are part of the wire contract.
std::string signal_words(int number) {
    switch (number) {
        case SIGHUP: return "hangup";
        case SIGINT: return "interrupt";
        case SIGQUIT: return "quit";
        case SIGILL: return "illegal instruction";
        case SIGTRAP: return "trace/breakpoint trap";
        case SIGABRT: return "aborted";
        case SIGBUS: return "bus error";
        case SIGFPE: return "floating point exception";
        case SIGKILL: return "killed";
        case SIGUSR1: return "user defined signal 1";
        case SIGSEGV: return "segmentation fault";
        case SIGUSR2: return "user defined signal 2";
        case SIGPIPE: return "broken pipe";
        case SIGALRM: return "alarm clock";
        case SIGTERM: return "terminated";
        default: return "signal " + std::to_string(number);
    }
}

ExitStatus status_of(const siginfo_t& info) {
    ExitStatus status;
    if (info.si_code == CLD_EXITED) {
        status.code = info.si_status;
    } else {
        status.signal = info.si_status;
        status.core = info.si_code == CLD_DUMPED;
    }
    return status;
}

}  // namespace

std::string ExitStatus::describe() const {
    if (signal == 0) return "exit status " + std::to_string(code);
    return "signal: " + signal_words(signal) + (core ? " (core dumped)" : "");
}

void Child::on_exit(std::function<void()> listener) {
    if (status_) {
        listener();
    } else {
        listeners_.push_back(std::move(listener));
    }
}

bool Child::signal(int number) const {
    return !reaped_ && ::kill(pid_, number) == 0;
}

bool Child::signal_group(int number) const {
    return !reaped_ && ::kill(-pid_, number) == 0;
}

void Child::finish(ExitStatus status) {
    status_ = status;
    auto listeners = std::move(listeners_);
    listeners_.clear();
    for (auto& listener : listeners)
        listener();
}

std::shared_ptr<Child> Reaper::watch(pid_t pid) {
    auto child = std::make_shared<Child>(pid);
    children_.emplace(pid, child);
    return child;
}

bool Reaper::collect() {
    if (held_ == 0) {
        for (int i = 0; i < kMaxAtOnce; ++i) {
            if (!collect_any()) return false;
        }
        return true;
    }
    // A held zombie would be the answer to every wait for any child; orphans wait until it is gone.
    std::vector<pid_t> known;
    known.reserve(children_.size());
    for (const auto& [pid, child] : children_)
        known.push_back(pid);
    for (pid_t pid : known)
        collect_one(pid);
    return false;
}

bool Reaper::collect_any() {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
        return false;
    }
    if (children_.contains(info.si_pid)) return collect_one(info.si_pid) && held_ == 0;
    siginfo_t ignored{};
    return ::waitid(P_PID, static_cast<id_t>(info.si_pid), &ignored, WEXITED | WNOHANG) == 0;
}

bool Reaper::collect_one(pid_t pid) {
    auto at = children_.find(pid);
    if (at == children_.end()) return false;
    std::shared_ptr<Child> child = at->second;
    bool hold = child->holds_ > 0;
    siginfo_t info{};
    int options = WEXITED | WNOHANG | (hold ? WNOWAIT : 0);
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, options) != 0 || info.si_pid == 0) {
        return false;
    }
    bool first = !child->status_.has_value();
    if (hold) {
        if (first) ++held_;
    } else {
        if (!first) --held_;
        child->reaped_ = true;
        children_.erase(at);
    }
    if (first) child->finish(status_of(info));
    return true;
}

Reaper::Hold::Hold(Reaper& reaper, std::shared_ptr<Child> child)
    : reaper_(reaper), child_(std::move(child)) {
    ++child_->holds_;
}

Reaper::Hold::~Hold() {
    if (--child_->holds_ > 0 || !child_->status_ || child_->reaped_) return;
    reaper_.collect_one(child_->pid_);
    while (reaper_.collect()) {
    }
}

bool group_has_living_member(pid_t group) {
    auto close_directory = [](DIR* directory) { ::closedir(directory); };
    std::unique_ptr<DIR, decltype(close_directory)> proc(::opendir("/proc"), close_directory);
    if (!proc) return false;
    while (const dirent* entry = ::readdir(proc.get())) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
        std::string path = std::string("/proc/") + entry->d_name + "/stat";
        UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        char text[512];
        ssize_t got = file ? ::read(file.get(), text, sizeof text) : -1;
        if (got <= 0) continue;
        // "pid (name) state ppid pgrp …": the name may hold anything, so count from its last ')'.
        std::string_view line(text, static_cast<std::size_t>(got));
        std::size_t close = line.rfind(')');
        if (close == std::string_view::npos || close + 4 > line.size()) continue;
        char state = line[close + 2];
        std::size_t parent = close + 4;
        std::size_t field = line.find(' ', parent);
        if (field == std::string_view::npos) continue;
        pid_t found = 0;
        std::from_chars(line.data() + field + 1, line.data() + line.size(), found);
        if (found == group && state != 'Z' && state != 'X') return true;
    }
    return false;
}

}  // namespace opensandbox::agent
