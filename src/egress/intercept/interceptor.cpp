#include "egress/intercept/interceptor.hpp"

#include "base/scope_exit.hpp"
#include "egress/intercept/interception.hpp"
#include "net/stream.hpp"
#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/this_coro.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <exception>
#include <vector>

namespace opensandbox::egress {
namespace {

constexpr std::chrono::seconds kSweep{1};
/// How long accepting pauses when descriptors or memory have run out.
constexpr std::chrono::milliseconds kExhausted{100};

/// Connections that a listener accepts inherit this. All of them come from this host: there is
/// nothing to be paced, and a host's BBR would do so, by a timer with each packet.
void send_unpaced(int listener) {
    constexpr std::string_view kNeverPaces = "reno";
    // Where this fails it is slower, no more.
    (void)::setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, kNeverPaces.data(),
                       static_cast<socklen_t>(kNeverPaces.size()));
}

bool allowed_still(InterceptGate& gate, const WatchedTarget& target) {
    using Action = TargetVerdict::Action;
    try {
        if (target.host.empty()) {
            return gate.judge_address(target.client, target.address).action != Action::deny;
        }
        auto verdict = gate.judge_name(target.client, target.host, target.address.port());
        return verdict.action != Action::deny &&
               gate.leads_to(target.client, target.host, target.address);
    } catch (const std::exception&) {
        return false;
    }
}

}  // namespace

struct Interceptor::Core : std::enable_shared_from_this<Interceptor::Core> {
    Core(asio::any_io_executor e, InterceptorSettings s, CertificateAuthority a,
         InterceptorParties p)
        : executor(std::move(e)),
          all(std::move(s), std::move(a), std::move(p)),
          stopping(executor) {}

    static Awaitable<void> run(std::shared_ptr<Core> core, net::StreamSocket socket) {
        ++core->connections;
        ScopeExit leave([&core] { --core->connections; });
        InterceptedConnection connection(core->all, std::move(socket));
        co_await connection.run();
    }

    static Awaitable<void> sweep(std::shared_ptr<Core> core) {
        while (!core->all.closed) {
            co_await core->stopping.wait_for(kSweep);
            core->all.watch.sweep(std::chrono::steady_clock::now());
        }
    }

    static Awaitable<void> accept(std::shared_ptr<Core> core,
                                  std::shared_ptr<asio::posix::stream_descriptor> listener,
                                  int family) {
        while (!core->all.closed) {
            UniqueFd fd(::accept4(listener->native_handle(), nullptr, nullptr,
                                  SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (fd) {
                core->take(std::move(fd), family);
                continue;
            }
            if (errno == EAGAIN) {
                co_await listener->async_wait(asio::posix::stream_descriptor::wait_read,
                                              kAsTupleAwaitable);
            } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                co_await net::sleep_for(kExhausted);
            } else if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) {
                co_return;
            }
        }
    }

    void take(UniqueFd fd, int family) {
        net::StreamSocket socket(executor);
        boost::system::error_code failure;
        socket.assign(asio::generic::stream_protocol(family, IPPROTO_TCP), fd.get(), failure);
        if (failure) return;
        (void)fd.release();
        net::set_tcp_options(socket.native_handle());
        net::spawn(executor, run(shared_from_this(), std::move(socket)), "egress connection");
    }

    asio::any_io_executor executor;
    Interception all;
    net::Event stopping;
    std::vector<std::shared_ptr<asio::posix::stream_descriptor>> listeners;
    std::size_t connections = 0;
};

Interceptor::Interceptor(std::shared_ptr<Core> core) : core_(std::move(core)) {}

Interceptor::~Interceptor() {
    close();
}

Result<std::unique_ptr<Interceptor>> Interceptor::make(asio::any_io_executor executor,
                                                       InterceptorSettings settings,
                                                       CertificateAuthority authority,
                                                       InterceptorParties parties) {
    if (parties.gate == nullptr || !parties.client_of || !parties.original_destination) {
        return Error(ErrorCode::invalid_argument, "interception without a policy");
    }
    auto core = std::make_shared<Core>(executor, std::move(settings), std::move(authority),
                                       std::move(parties));
    Interception& all = core->all;
    auto upstream = UpstreamTls::make(all.settings.upstream);
    if (!upstream) return upstream.error();
    all.upstream_tls = std::move(*upstream);
    auto client = ClientTls::make(all.authority, all.settings.cached_leaves);
    if (!client) return client.error();
    all.client_tls = std::move(*client);
    net::spawn(executor, Core::sweep(core), "egress sweep");
    return std::unique_ptr<Interceptor>(new Interceptor(std::move(core)));
}

Status Interceptor::serve(UniqueFd listener) {
    auto family = net::stream_socket_family(listener.get());
    if (!family) return family.error();
    send_unpaced(listener.get());
    auto descriptor = std::make_shared<asio::posix::stream_descriptor>(core_->executor);
    boost::system::error_code failure;
    descriptor->assign(listener.get(), failure);
    if (failure) return Error::from_errno(failure.value(), "listen");
    (void)listener.release();
    descriptor->non_blocking(true, failure);
    core_->listeners.push_back(descriptor);
    net::spawn(core_->executor, Core::accept(core_, descriptor, *family), "egress accept");
    return {};
}

void Interceptor::close() {
    if (core_->all.closed) return;
    core_->all.closed = true;
    boost::system::error_code ignored;
    for (auto& listener : core_->listeners)
        listener->close(ignored);
    core_->stopping.notify();
    core_->all.watch.sweep(std::chrono::steady_clock::time_point::max());
}

void Interceptor::recheck(ClientId client) {
    Interception& all = core_->all;
    all.watch.expire_where([&](const WatchedTarget& target) {
        if (target.client != client || allowed_still(*all.parties.gate, target)) return false;
        if (all.parties.audit != nullptr) {
            ConnectionRecord record;
            record.client = client;
            record.target = target.address;
            record.host = target.host;
            record.outcome = Outcome::denied;
            record.reason = "the policy has changed";
            all.parties.audit->on_connection(record);
        }
        return true;
    });
}

void Interceptor::retire_unbound(ClientId client) {
    Interception& all = core_->all;
    const auto unbound = [&](const WatchedTarget& target) {
        if (target.client != client || !target.decrypted) return false;
        try {
            const Interest interest =
                all.parties.gate->interest(client, target.host, target.address.port());
            return interest != Interest::any && interest != Interest::bound;
        } catch (const std::exception&) {
            return true;
        }
    };
    all.watch.retire_where(unbound, all.settings.retirement);
}

std::size_t Interceptor::open_connections() const {
    return core_->connections;
}

const std::string& Interceptor::authority_pem() const {
    return core_->all.authority.certificate_pem();
}

}  // namespace opensandbox::egress
