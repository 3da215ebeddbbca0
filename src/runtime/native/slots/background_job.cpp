#include "runtime/native/slots/background_job.hpp"

#include "base/descriptor_limit.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/slots/worker.hpp"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <unistd.h>
#include <utility>

namespace opensandbox::runtime::native {

namespace {

constexpr std::size_t kMaxRunning = 2;

[[noreturn]] void run_job(const Host& host, pid_t parent, UniqueFd socket,
                          const BackgroundJobs::Job& job) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    auto own = become_worker(host, std::move(socket));
    if (!own) ::_exit(1);
    raise_descriptor_limit();
    const Status status = job.work();
    const Message answer = status ? Message(DoneReply{}) : Message(FailedReply{0, status.error()});
    if (!send_message(*own, encode(answer))) ::_exit(1);
    if (status && job.afterwards) job.afterwards();
    ::_exit(0);
}

}  // namespace

std::uint64_t BackgroundJobs::start(Job job) {
    const std::uint64_t number = ++last_number_;
    if (running_.size() >= kMaxRunning)
        waiting_.emplace_back(number, std::move(job));
    else
        launch(number, std::move(job));
    return number;
}

void BackgroundJobs::launch(std::uint64_t number, Job job) {
    auto pair = message_pair();
    const pid_t parent = ::getpid();
    const pid_t pid = pair ? ::fork() : -1;
    if (pid == 0) run_job(*host_, parent, std::move(pair->second), job);
    if (pid < 0) {
        Error error = pair ? last_error("fork") : pair.error();
        loop_->run_after({}, [done = std::move(job.done), error = std::move(error)] {
            if (done) done(error);
        });
        return;
    }
    Running& running = running_[number];
    running.pid = pid;
    running.socket = std::move(pair->first);
    running.done = std::move(job.done);
    running.watch = loop_->watch(running.socket.get(), EPOLLIN,
                                 [this, number](std::uint32_t) { on_message(number); });
}

void BackgroundJobs::on_message(std::uint64_t number) {
    const auto found = running_.find(number);
    if (found == running_.end()) return;
    Running& running = found->second;
    auto received = receive_message(running.socket.get());
    auto message =
        received && !received->closed ? decode(received->bytes) : Result<Message>(Error());
    Status outcome;
    if (message && std::holds_alternative<FailedReply>(*message))
        outcome = std::get<FailedReply>(*message).error;
    else if (!message)
        outcome = running.cancelled ? Error(ErrorCode::cancelled, "the work was given up")
                                    : Error(ErrorCode::internal, "the process that did it died");
    auto done = std::exchange(running.done, nullptr);
    if (!message) {
        running.watch.reset();
        ::kill(running.pid, SIGKILL);
        ::waitpid(running.pid, nullptr, 0);
        running_.erase(found);
        start_next();
    }
    if (done) done(std::move(outcome));
}

void BackgroundJobs::start_next() {
    while (running_.size() < kMaxRunning && !waiting_.empty()) {
        auto [number, job] = std::move(waiting_.front());
        waiting_.pop_front();
        launch(number, std::move(job));
    }
}

void BackgroundJobs::cancel(std::uint64_t number) {
    const auto found = running_.find(number);
    if (found != running_.end()) {
        if (!found->second.done) return;
        found->second.cancelled = true;
        ::kill(found->second.pid, SIGKILL);
        return;
    }
    const auto waiting =
        std::ranges::find_if(waiting_, [&](const auto& item) { return item.first == number; });
    if (waiting == waiting_.end()) return;
    auto done = std::move(waiting->second.done);
    waiting_.erase(waiting);
    loop_->run_after({}, [done = std::move(done)] {
        if (done) done(Error(ErrorCode::cancelled, "the work was given up"));
    });
}

}  // namespace opensandbox::runtime::native
