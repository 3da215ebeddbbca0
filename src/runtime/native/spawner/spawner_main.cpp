#include "base/descriptor_limit.hpp"
#include "base/log.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/slots/worker.hpp"
#include "runtime/native/spawner/spawner.hpp"

#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

/// Tells whoever started this process that it serves, or why not; once.
void report(const SpawnerOptions& options, std::string_view text) {
    if (options.report < 0) return;
    const UniqueFd pipe(options.report);
    if (::write(pipe.get(), text.data(), text.size()) < 0) {
        log::debug("nobody waits for the spawner");
    }
}

int fail(const SpawnerOptions& options, const Error& error) {
    log::error("the spawner cannot serve", {{"reason", error.message()}});
    report(options, "error " + error.message());
    return 1;
}

/// Becomes the child of init, so that no server has to reap it.
void leave_parent() {
    const pid_t pid = ::fork();
    if (pid > 0) ::_exit(0);
    ::setsid();
}

/// One spawner a state directory. An ending one is waited for.
Result<UniqueFd> lock_state(const SpawnerOptions& options) {
    const auto path = options.own_directory() / "lock";
    UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock) return last_error("open " + path.string());
    for (int round = 0; round < 1500; ++round) {
        if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
        if (round > 20 && ::access(options.socket_path().c_str(), F_OK) == 0) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return Error(ErrorCode::conflict, "another spawner serves " + options.state_directory.string());
}

/// Signals that end it come through a descriptor; those of terminals and pipes go nowhere.
Result<UniqueFd> take_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, kHandOverSignal);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGHUP, SIG_IGN);
    UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) return last_error("signalfd");
    return fd;
}

int serve(const SpawnerOptions& options) {
    for (const auto& path : {options.state_directory, options.own_directory()}) {
        if (::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) {
            return fail(options, last_error("mkdir " + path.string()));
        }
    }
    auto lock = lock_state(options);
    if (!lock) return fail(options, lock.error());
    if (auto s = await_earlier_workers(options); !s) return fail(options, s.error());
    auto signals = take_signals();
    if (!signals) return fail(options, signals.error());
    auto host = prepare_host(options);
    if (!host) return fail(options, host.error());
    auto journal = Journal::open(journal_directory(options.state_directory));
    if (!journal) return fail(options, journal.error());
    auto loop = EventLoop::make();
    if (!loop) return fail(options, loop.error());
    auto socket = listen_message_socket(options.socket_path());
    if (!socket) return fail(options, socket.error());
    {
        Spawner spawner(std::move(*loop), *host, std::move(*journal), std::move(*socket));
        if (auto s = spawner.start(); !s) return fail(options, s.error());
        log::info("the spawner serves", {{"state", options.state_directory.string()},
                                         {"range", host->range.to_string()},
                                         {"shifted_ids", host->shift_ids}});
        report(options, "ready");
        const bool handed_over = spawner.run(signals->get()) == Spawner::End::handed_over;
        if (handed_over) return 0;
    }
    unprepare_host(*host);
    log::info("the spawner ended");
    return 0;
}

}  // namespace

int spawner_main(int argc, char** argv) {
    log::configure(log::Level::info, log::Format::text, 2);
    auto options = SpawnerOptions::parse({argv + 1, argv + argc});
    if (!options) {
        log::error("spawner", {{"reason", options.error().message()}});
        return 2;
    }
    if (options->report >= 0) leave_parent();
    ::umask(077);
    ::prctl(PR_SET_DUMPABLE, 0);
    raise_descriptor_limit();
    if (::chdir("/") < 0) return fail(*options, last_error("chdir /"));
    if (::geteuid() != 0) {
        return fail(*options, Error(ErrorCode::permission_denied,
                                    "the spawner needs to be root, if only of a user namespace"));
    }
    return serve(*options);
}

}  // namespace opensandbox::runtime::native
