#include "base/freed_memory.hpp"
#include "base/log.hpp"
#include "egress/role/enforcer.hpp"
#include "egress/role/request_environment.hpp"
#include "egress/settings/environment.hpp"
#include "egress/settings/names.hpp"
#include "egress/settings/values.hpp"
#include "net/task.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "runtime/native/records/protocol.hpp"
#include "runtime/native/spawner/egress/enforcer_process.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>

#include <algorithm>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

using Control = std::shared_ptr<asio::posix::stream_descriptor>;
/// The process works in the directory that it may write to.
constexpr const char* kOwnDirectory = ".";

/// Waits for a message and its descriptors. An error when the spawner is gone.
Awaitable<Result<ReceivedMessage>> next_message(Control control) {
    while (true) {
        boost::system::error_code failed;
        co_await control->async_wait(asio::posix::descriptor_base::wait_read,
                                     asio::redirect_error(asio::use_awaitable, failed));
        if (failed) co_return Error(ErrorCode::unavailable, "the spawner is gone");
        auto received = receive_message(control->native_handle());
        if (!received && received.error().code() == ErrorCode::resource_exhausted) continue;
        if (received && received->closed) {
            co_return Error(ErrorCode::unavailable, "the spawner is gone");
        }
        co_return received;
    }
}

Awaitable<Status> say(Control control, Message message) {
    const std::string bytes = encode(message);
    while (true) {
        auto sent = send_message(control->native_handle(), bytes);
        if (sent || sent.error().code() != ErrorCode::resource_exhausted) co_return sent;
        boost::system::error_code failed;
        co_await control->async_wait(asio::posix::descriptor_base::wait_write,
                                     asio::redirect_error(asio::use_awaitable, failed));
        if (failed) co_return Error(ErrorCode::unavailable, "the spawner is gone");
    }
}

egress::EnforcerSockets take_sockets(std::vector<UniqueFd> given) {
    egress::EnforcerSockets out;
    const bool both = given.size() == 7;
    std::size_t next = 0;
    out.dns_udp4 = std::move(given[next++]);
    out.dns_tcp4 = std::move(given[next++]);
    out.intercept4 = std::move(given[next++]);
    if (both) {
        out.dns_udp6 = std::move(given[next++]);
        out.dns_tcp6 = std::move(given[next++]);
        out.intercept6 = std::move(given[next++]);
    }
    out.api = std::move(given[next]);
    return out;
}

std::function<std::optional<std::string>(std::string_view)> lookup_in(const Environment& given) {
    return [given](std::string_view name) -> std::optional<std::string> {
        const auto found = std::ranges::find(
            given, name, [](const auto& item) { return std::string_view(item.first); });
        if (found == given.end()) return std::nullopt;
        return found->second;
    };
}

Result<egress::EnforcerSettings> settings_of(const EnforcerStart& start) {
    boost::system::error_code wrong;
    egress::rules::HostOptions rules(start.table);
    rules.gateway4 = boost::asio::ip::make_address_v4(start.gateway4, wrong);
    if (!start.gateway6.empty()) {
        rules.gateway6 = boost::asio::ip::make_address_v6(start.gateway6, wrong);
    }
    if (wrong) return Error(ErrorCode::protocol, "enforcer: a gateway is no address");
    rules.dns_port = start.dns_port;
    rules.interceptor_port = start.intercept_port;
    rules.log = egress::rules::LogLimits(start.log_group);
    egress::EnforcerSettings settings(std::move(rules));
    settings.state_directory = kOwnDirectory;
    const auto lookup = lookup_in(start.settings);
    auto parsed = egress::parse_environment(lookup, settings.dns);
    if (!parsed) return parsed.error();
    for (const std::string& warning : parsed->warnings)
        log::warn(warning);
    settings.dns = std::move(parsed->dns);
    const egress::SidecarOptions& options = parsed->options;
    log::configure(options.log_level, log::Format::text, 2);
    for (const egress::DnsUpstream& upstream : options.dns_upstreams) {
        settings.dns.upstream.servers.emplace_back(
            boost::asio::ip::udp::endpoint(upstream.address, upstream.port));
    }
    settings.dns.upstream.timeout = options.dns_timeout;
    settings.dns.upstream.probe = options.dns_probe;
    settings.dns.upstream.probe_interval = options.dns_probe_interval;
    settings.max_rules = options.max_rules;
    auto passed = egress::pass_through_list(options.pass_through);
    if (!passed) return passed.error();
    settings.passed = std::move(*passed);
    settings.sandbox_defaults = egress::sandbox_defaults(lookup);
    settings.block_doh = options.block_doh;
    settings.doh_servers = options.doh_blocklist;
    settings.upstream_trust_directory = options.upstream_trust_directory;
    settings.upstream_extra_ca = options.upstream_extra_ca;
    settings.upstream_proxy = options.upstream_proxy;
    settings.upstream_proxy_authorization = options.upstream_proxy_authorization;
    return settings;
}

Result<egress::GuardedSpec> spec_of(GuardRequest request) {
    egress::GuardedSpec spec;
    spec.id = std::move(request.id);
    spec.link = std::move(request.link);
    for (const std::string& text : request.addresses) {
        boost::system::error_code wrong;
        spec.addresses.push_back(boost::asio::ip::make_address(text, wrong));
        if (wrong) return Error(ErrorCode::protocol, "enforcer: \"" + text + "\" is no address");
    }
    spec.policy = std::move(request.egress.policy);
    spec.token = std::move(request.egress.token);
    for (auto& [name, value] : request.egress.environment)
        spec.environment.insert_or_assign(std::move(name), std::move(value));
    return spec;
}

Awaitable<Status> guard(egress::Enforcer& enforcer, Control control, GuardRequest request) {
    const std::uint64_t number = request.request;
    auto spec = spec_of(std::move(request));
    Status done = spec ? Status() : spec.error();
    bool intercepts = false;
    if (spec) {
        const auto wish = spec->environment.find(std::string(egress::setting::kTransparent));
        intercepts = wish != spec->environment.end() && egress::is_truthy(wish->second);
        done = co_await enforcer.guard(std::move(*spec));
    }
    Message reply = FailedReply{};
    if (done)
        reply = TextReply{number, intercepts ? enforcer.authority_pem() : std::string()};
    else
        reply = FailedReply{number, done.error()};
    co_return co_await say(control, std::move(reply));
}

/// In the order in which the spawner says it.
Awaitable<Status> obey(egress::Enforcer& enforcer, Control control) {
    while (true) {
        auto received = co_await next_message(control);
        if (!received) co_return received.error();
        auto message = decode(received->bytes);
        if (!message) co_return message.error();
        Status done;
        if (auto* wanted = std::get_if<GuardRequest>(&*message)) {
            done = co_await guard(enforcer, control, std::move(*wanted));
        } else if (auto* gone = std::get_if<ReleaseRequest>(&*message)) {
            co_await enforcer.release(std::move(gone->id));
        } else if (std::holds_alternative<SettleRequest>(*message)) {
            enforcer.settle();
        } else {
            done = Error(ErrorCode::protocol, "enforcer: unexpected message");
        }
        if (!done) co_return done;
    }
}

Awaitable<Status> serve(Control control) {
    auto received = co_await next_message(control);
    if (!received) co_return received.error();
    auto message = decode(received->bytes);
    const auto* start = message ? std::get_if<EnforcerStart>(&*message) : nullptr;
    const std::size_t sockets = received->descriptors.size();
    if (!start || (sockets != 4 && sockets != 7)) {
        co_return Error(ErrorCode::protocol, "enforcer: unexpected beginning");
    }
    auto settings = settings_of(*start);
    Status done = settings ? Status() : settings.error();
    const auto executor = co_await asio::this_coro::executor;
    if (done) {
        // The kernel takes all of this process but the packet filter's table, however it ends.
        egress::Enforcer enforcer(executor, std::move(*settings),
                                  take_sockets(std::move(received->descriptors)));
        done = co_await enforcer.start();
        if (done) {
            log::info("egress control is in force", {{"table", start->table}});
            done = co_await obey(enforcer, control);
            log::info("egress control ends; what is refused stays refused");
            ::_exit(0);
        }
        log::error("egress control cannot start", {{"reason", done.error().message()}});
        (void)co_await say(control, FailedReply{0, done.error()});
        ::_exit(1);
    }
    (void)co_await say(control, FailedReply{0, done.error()});
    co_return done;
}

Awaitable<void> run(Control control, asio::io_context& loop, int& code) {
    const Status served = co_await serve(std::move(control));
    if (!served) {
        log::error("the enforcer of egress control ends", {{"reason", served.error().message()}});
        code = 1;
    }
    loop.stop();
}

}  // namespace

int serve_enforcer(UniqueFd control) {
    keep_freed_memory();
    (void)::fcntl(control.get(), F_SETFL, O_NONBLOCK);
    (void)::fcntl(control.get(), F_SETFD, FD_CLOEXEC);
    asio::io_context loop(1);
    int code = 0;
    auto descriptor =
        std::make_shared<asio::posix::stream_descriptor>(loop.get_executor(), control.release());
    net::spawn(loop.get_executor(), run(std::move(descriptor), loop, code), "enforcer");
    loop.run();
    return code;
}

}  // namespace opensandbox::runtime::native
