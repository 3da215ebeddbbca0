#include "runtime/native/slots/worker.hpp"

#include "base/log.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/slots/broker_maker.hpp"
#include "runtime/native/slots/slot_maker.hpp"

#include <sys/file.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr int kWorkerDescriptor = 3;
constexpr int kNiceness = 5;

std::filesystem::path worker_lock(const SpawnerOptions& options) {
    return options.own_directory() / "workers";
}

void step_back() {
    // Slots must be able to come back to where others are; without the privilege for that, nobody
    // leaves.
    ::setpriority(PRIO_PROCESS, 0, 1);
    if (::setpriority(PRIO_PROCESS, 0, 0) == 0) ::setpriority(PRIO_PROCESS, 0, kNiceness);
}

void make(SlotMaker& maker, SlotId slot, bool usr) {
    auto made = maker.make(slot, usr);
    if (!made) {
        (void)send_message(kWorkerDescriptor,
                           encode(JobFailed{slot, maker.cloned(), made.error()}));
        return;
    }
    std::vector<int> descriptors{made->control.get(), made->pidfd.get(), made->user_namespace.get(),
                                 made->base.get()};
    if (made->usr) descriptors.push_back(made->usr.get());
    (void)send_message(kWorkerDescriptor, encode(SlotMade{slot, made->pid}), descriptors);
}

/// The one job that comes with descriptors.
void start(const Host& host, int program, const MakeBroker& job,
           const std::vector<UniqueFd>& descriptors) {
    if (descriptors.size() != 2) return;
    auto started =
        start_broker(host, program, job.slot, descriptors[0].get(), descriptors[1].get(), job.pid);
    if (!started) {
        (void)send_message(kWorkerDescriptor, encode(JobFailed{job.slot, 0, started.error()}));
        return;
    }
    (void)send_message(kWorkerDescriptor, encode(BrokerMade{job.slot, started->pid}),
                       std::array{started->pidfd.get()});
}

void remove(SlotMaker& maker, SlotId slot, bool files) {
    if (auto status = maker.remove(slot, files); !status) {
        log::error("remains of a sandbox stay behind",
                   {{"slot", slot_name(slot)}, {"reason", status.error().message()}});
        (void)send_message(kWorkerDescriptor, encode(JobFailed{slot, 0, status.error()}));
        return;
    }
    (void)send_message(kWorkerDescriptor, encode(SlotRemoved{slot}));
}

[[noreturn]] void run_worker(const Host& host, UniqueFd socket) {
    if (!become_worker(host, std::move(socket))) ::_exit(1);
    auto maker = SlotMaker::open(host);
    if (!maker) {
        log::error("worker cannot begin", {{"reason", maker.error().message()}});
        ::_exit(1);
    }
    while (true) {
        auto received = receive_message(kWorkerDescriptor);
        if (!received || received->closed) ::_exit(0);
        auto message = decode(received->bytes);
        if (!message) ::_exit(1);
        if (auto* job = std::get_if<MakeSlot>(&*message)) make(*maker, job->slot, job->usr);
        if (auto* job = std::get_if<MakeBroker>(&*message))
            start(host, maker->program(), *job, received->descriptors);
        if (auto* job = std::get_if<RemoveSlot>(&*message)) remove(*maker, job->slot, job->files);
    }
}

}  // namespace

Result<int> become_worker(const Host& host, UniqueFd socket) {
    if (socket.get() != kWorkerDescriptor) {
        ::dup3(socket.get(), kWorkerDescriptor, O_CLOEXEC);
    }
    (void)socket.release();
    ::close_range(kWorkerDescriptor + 1, ~0U, 0);
    for (int number = 1; number < NSIG; ++number)
        ::signal(number, SIG_DFL);
    // It ends with its socket, once what it was doing is done.
    for (const int number : {SIGTERM, SIGINT, SIGHUP})
        ::signal(number, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    UniqueFd lock(::open(worker_lock(host.options).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock || ::flock(lock.get(), LOCK_SH) < 0) return last_error("lock of workers");
    // Held until the process ends.
    (void)lock.release();
    step_back();
    return kWorkerDescriptor;
}

Result<Worker> start_worker(const Host& host) {
    auto pair = message_pair();
    if (!pair) return pair.error();
    const pid_t pid = ::fork();
    if (pid < 0) return last_error("fork");
    if (pid == 0) run_worker(host, std::move(pair->second));
    Worker worker;
    worker.pid = pid;
    worker.socket = std::move(pair->first);
    return worker;
}

Status await_earlier_workers(const SpawnerOptions& options) {
    UniqueFd lock(::open(worker_lock(options).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock) return last_error("open " + worker_lock(options).string());
    for (int round = 0; round < 1000; ++round) {
        if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return {};
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return Error(ErrorCode::timeout, "a worker of an earlier spawner does not end");
}

}  // namespace opensandbox::runtime::native
