#include "agent/isolated/namespaces.hpp"

#include "net/task.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

const char* describe(SetupStep step) {
    switch (step) {
        case SetupStep::privacy: return "make the mounts private";
        case SetupStep::overlay: return "make the overlay";
        case SetupStep::uppers: return "mount the file system for uppers in memory";
        case SetupStep::read_only: return "make the root read-only";
        case SetupStep::scratch: return "mount private directories";
        case SetupStep::proc: return "mount /proc";
        case SetupStep::devices: return "mount /dev";
        case SetupStep::attach: return "mount";
        case SetupStep::network: return "raise the loopback interface";
        case SetupStep::user: return "enter a user namespace";
        case SetupStep::report: return "report";
        case SetupStep::none: break;
    }
    return "begin";
}

Error failure(const SetupReport& report, const NamespacePlan& plan) {
    std::string what = "isolation: ";
    what += describe(report.step);
    if (report.index >= 0 && static_cast<std::size_t>(report.index) < plan.attachments.size()) {
        what += " " + plan.attachments[static_cast<std::size_t>(report.index)].target;
    }
    return {ErrorCode::io, Error::from_errno(report.error, what).message()};
}

/// A copy of this process in namespaces of its own, as fork() makes one.
pid_t clone_into_namespaces(const NamespacePlan& plan) {
    unsigned long flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD;
    if (!plan.share_net) flags |= CLONE_NEWNET;
    return static_cast<pid_t>(::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
}

Awaitable<Status> wait_readable(int descriptor) {
    auto executor = co_await asio::this_coro::executor;
    asio::posix::stream_descriptor watched(executor, descriptor);
    boost::system::error_code failed;
    co_await watched.async_wait(asio::posix::stream_descriptor::wait_read,
                                asio::redirect_error(asio::use_awaitable, failed));
    watched.release();
    if (failed) co_return Error(ErrorCode::cancelled, "isolation: " + failed.message());
    co_return Status();
}

}  // namespace

SessionNamespaces::SessionNamespaces(std::shared_ptr<Child> first, UniqueFd channel)
    : first_(std::move(first)),
      channel_(std::move(channel)),
      mounts_(std::make_shared<UniqueFd>()) {}

SessionNamespaces::~SessionNamespaces() {
    kill();
}

void SessionNamespaces::kill() {
    first_->signal(SIGKILL);
}

std::vector<int> SessionNamespaces::descriptors() const {
    std::vector<int> all;
    for (const UniqueFd& space : others_)
        all.push_back(space.get());
    // The user namespace, always the last, must be entered when nothing else is left to enter.
    all.insert(all.begin(), mounts_->get());
    return all;
}

Awaitable<Result<std::shared_ptr<SessionNamespaces>>> SessionNamespaces::create(
    Reaper& reaper, NamespacePlan plan) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        co_return Error::from_errno(errno, "isolation: make a channel");
    }
    UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    pid_t pid = clone_into_namespaces(plan);
    if (pid == 0) {
        ::close(ours.get());
        run_first_process(plan, theirs.get());
    }
    if (pid < 0) {
        Error refused = Error::from_errno(errno, "isolation: make namespaces");
        if (refused.code() != ErrorCode::permission_denied) co_return refused;
        co_return Error(ErrorCode::unsupported,
                        "isolation is not available: this agent may not make namespaces (it needs "
                        "CAP_SYS_ADMIN and a system call filter that lets it)");
    }
    theirs.reset();
    // While one of our children is put inside it still shares our memory: nobody may look there.
    ::prctl(PR_SET_DUMPABLE, 0);
    auto made = std::make_shared<SessionNamespaces>(reaper.watch(pid), std::move(ours));
    Status readable = co_await wait_readable(made->channel_.get());
    if (!readable) co_return readable.error();
    Status reported = made->take_report(plan);
    if (!reported) co_return reported.error();
    co_return made;
}

Status SessionNamespaces::take_report(const NamespacePlan& plan) {
    SetupReport report;
    iovec piece{&report, sizeof report};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t got = ::recvmsg(channel_.get(), &message, MSG_CMSG_CLOEXEC);
    if (got != sizeof report) {
        return Error(ErrorCode::io, "isolation: the first process ended before it was ready");
    }
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int descriptor = -1;
            std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
            others_.emplace_back(descriptor);
        }
    }
    if (report.step != SetupStep::none) return failure(report, plan);
    if (others_.size() < 4) return Error(ErrorCode::io, "isolation: incomplete report");
    *mounts_ = std::move(others_.front());
    others_.erase(others_.begin());
    return {};
}

}  // namespace opensandbox::agent
