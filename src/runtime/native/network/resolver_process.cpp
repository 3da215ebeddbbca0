#include "runtime/native/network/resolver_process.hpp"

#include "base/log.hpp"
#include "net/task.hpp"
#include "runtime/native/ground/confinement/capabilities.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/kernel/signals.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/network/resolver_service.hpp"
#include "runtime/native/records/protocol.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <grp.h>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr int kFirstDescriptor = 3;
constexpr uid_t kNobody = 65'534;
/// Descriptors: a socket for each query in flight and each connection, and room.
constexpr rlim_t kMaxFiles = 4096;

struct Inherited {
    UniqueFd control, udp, tcp;
};

/// Keeps three descriptors and closes all others.
Result<Inherited> keep_only(UniqueFd control, const ResolverSockets& sockets) {
    Inherited kept;
    // Out of the way of where they go.
    const int high = 64;
    kept.control.reset(::fcntl(control.get(), F_DUPFD_CLOEXEC, high));
    kept.udp.reset(::fcntl(sockets.udp.get(), F_DUPFD_CLOEXEC, high));
    kept.tcp.reset(::fcntl(sockets.tcp.get(), F_DUPFD_CLOEXEC, high));
    if (!kept.control || !kept.udp || !kept.tcp) return last_error("duplicate sockets");
    (void)control.release();
    std::array<UniqueFd*, 3> all{&kept.control, &kept.udp, &kept.tcp};
    for (std::size_t i = 0; i < all.size(); ++i) {
        const int at = kFirstDescriptor + static_cast<int>(i);
        if (::dup3(all[i]->get(), at, O_CLOEXEC) < 0) return last_error("dup3");
    }
    for (UniqueFd* fd : all)
        (void)fd->release();
    ::close_range(kFirstDescriptor + all.size(), ~0U, 0);
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i]->reset(kFirstDescriptor + static_cast<int>(i));
    return kept;
}

Status drop_privileges() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_max = std::min<rlim_t>(files.rlim_max, kMaxFiles);
        files.rlim_cur = files.rlim_max;
        (void)::setrlimit(RLIMIT_NOFILE, &files);
    }
    if (auto s = check(::setgroups(0, nullptr), "setgroups"); !s) return s;
    if (auto s = check(::setresgid(kNobody, kNobody, kNobody), "setgid"); !s) return s;
    if (auto s = check(::setresuid(kNobody, kNobody, kNobody), "setuid"); !s) return s;
    if (auto s = drop_capabilities(0); !s) return s;
    if (auto s = check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs"); !s) return s;
    return check(::prctl(PR_SET_DUMPABLE, 0), "prctl dumpable");
}

/// Names of shared networks come in until the spawner is gone.
Awaitable<void> read_control(std::shared_ptr<ResolverService> service,
                             std::shared_ptr<asio::posix::stream_descriptor> control) {
    while (true) {
        boost::system::error_code failed;
        co_await control->async_wait(asio::posix::descriptor_base::wait_read,
                                     asio::redirect_error(asio::use_awaitable, failed));
        auto received = receive_message(control->native_handle());
        if (!received && received.error().code() == ErrorCode::resource_exhausted) continue;
        if (failed || !received || received->closed) ::_exit(0);
        auto message = decode(received->bytes);
        auto* member = message ? std::get_if<NetworkMember>(&*message) : nullptr;
        if (!member) ::_exit(1);
        std::vector<asio::ip::address> others;
        boost::system::error_code none;
        const auto address6 = asio::ip::make_address_v6(member->address6, none);
        if (!none) others.emplace_back(address6);
        service->names().set(net::Ipv4Address(member->address), std::move(member->network),
                             std::move(member->names), others);
    }
}

}  // namespace

void run_resolver(const ResolverSockets& sockets, net::Ipv4Range range, UniqueFd control) {
    // It ends with its socket.
    reset_signals({SIGTERM, SIGINT, SIGHUP, SIGPIPE});
    auto kept = keep_only(std::move(control), sockets);
    if (!kept || !drop_privileges()) ::_exit(1);
    ::prctl(PR_SET_NAME, "osb-resolver");
    asio::io_context loop(1);
    auto service =
        std::make_shared<ResolverService>(loop.get_executor(), range, "/etc/resolv.conf");
    if (auto s = service->start(std::move(kept->udp), std::move(kept->tcp)); !s) {
        log::error("the resolver cannot serve", {{"reason", s.error().message()}});
        ::_exit(1);
    }
    (void)::fcntl(kept->control.get(), F_SETFL, O_NONBLOCK);
    auto descriptor = std::make_shared<asio::posix::stream_descriptor>(loop.get_executor(),
                                                                       kept->control.release());
    net::spawn(loop.get_executor(), read_control(service, descriptor), "resolver: names");
    loop.run();
    ::_exit(0);
}

}  // namespace opensandbox::runtime::native
