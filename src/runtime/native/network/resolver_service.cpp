#include "runtime/native/network/resolver_service.hpp"

#include "base/log.hpp"
#include "net/dns/framing.hpp"
#include "net/stream.hpp"
#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <sys/random.h>

#include <array>
#include <fstream>
#include <iterator>

namespace opensandbox::runtime::native {

namespace {

using asio::ip::udp;
namespace dns = net::dns;

/// No client may ask for longer answers over UDP, nor ask longer questions.
constexpr std::size_t kMaxUdp = 4096;
constexpr std::uint32_t kLocalTtl = 5;
constexpr std::chrono::seconds kLookAgain{1};
constexpr int kMaxStray = 16;

std::uint16_t random_id() {
    std::uint16_t id = 0;
    while (::getrandom(&id, sizeof id, 0) != static_cast<ssize_t>(sizeof id)) {
    }
    return id;
}

Error unanswered(const asio::ip::address& server, std::string_view what) {
    return {ErrorCode::unavailable, server.to_string() + ": " + std::string(what)};
}

}  // namespace

/// Counts one use of a client's share while it exists.
class ResolverService::Turn {
  public:
    Turn(Counts& counts, std::size_t& all, net::Ipv4Address client, std::size_t most,
         std::size_t most_of_one)
        : counts_(&counts), all_(&all), client_(client) {
        const auto found = counts.find(client);
        const std::size_t own = found == counts.end() ? 0 : found->second;
        taken_ = all < most && own < most_of_one;
        if (!taken_) return;
        ++all;
        ++counts[client];
    }
    ~Turn() {
        if (!taken_) return;
        --*all_;
        const auto found = counts_->find(client_);
        if (--found->second == 0) counts_->erase(found);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    [[nodiscard]] bool taken() const { return taken_; }

  private:
    Counts* counts_;
    std::size_t* all_;
    net::Ipv4Address client_;
    bool taken_;
};

ResolverService::ResolverService(asio::any_io_executor executor, net::Ipv4Range range,
                                 std::filesystem::path settings_file, std::uint16_t upstream_port,
                                 ResolverLimits limits)
    : executor_(executor),
      range_(range),
      settings_file_(std::move(settings_file)),
      upstream_port_(upstream_port),
      limits_(limits),
      udp_(executor) {}

Status ResolverService::start(UniqueFd udp, UniqueFd tcp) {
    boost::system::error_code failed;
    udp_.assign(udp::v4(), udp.get(), failed);
    if (failed) return Error(ErrorCode::io, "resolver: " + failed.message());
    (void)udp.release();
    auto listener = net::adopt_listener(executor_, std::move(tcp));
    if (!listener) return listener.error();
    tcp_ = std::move(*listener);
    net::spawn(executor_, serve_udp(shared_from_this()), "resolver over UDP");
    net::spawn(executor_, serve_tcp(shared_from_this()), "resolver over TCP");
    return {};
}

void ResolverService::stop() {
    stopped_ = true;
    boost::system::error_code ignored;
    udp_.close(ignored);
    if (tcp_) tcp_->close();
}

std::size_t ResolverService::most_queries_of(net::Ipv4Address client) const {
    return client == range_.address(1) ? limits_.queries / 2 : limits_.queries_of_one;
}

std::size_t ResolverService::most_connections_of(net::Ipv4Address client) const {
    return client == range_.address(1) ? limits_.connections / 2 : limits_.connections_of_one;
}

const dns::ResolverSettings& ResolverService::settings() {
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_at_ < kLookAgain) return settings_;
    looked_at_ = now;
    std::error_code error;
    const auto changed = std::filesystem::last_write_time(settings_file_, error);
    if (error || changed == settings_time_) return settings_;
    std::ifstream in(settings_file_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    settings_time_ = changed;
    settings_ = dns::parse_resolver_settings(text);
    // A host that names our own gateway would have its queries go round in circles.
    std::erase_if(settings_.servers, [&](const asio::ip::address& server) {
        return server.is_v4() && range_.contains(server.to_v4());
    });
    return settings_;
}

Awaitable<void> ResolverService::serve_udp(std::shared_ptr<ResolverService> self) {
    std::array<char, kMaxUdp> buffer{};
    while (!self->stopped_) {
        udp::endpoint client;
        auto [failed, size] =
            co_await self->udp_.async_receive_from(asio::buffer(buffer), client, kAsTupleAwaitable);
        if (self->stopped_) co_return;
        if (failed) {
            // An earlier answer that could not be delivered shows up here; what lasts must not
            // spin.
            co_await net::sleep_for(std::chrono::milliseconds(1));
            continue;
        }
        if (!client.address().is_v4() || !self->range_.contains(client.address().to_v4())) continue;
        std::string message(buffer.data(), size);
        net::spawn(self->executor_, answer_udp(self, std::move(message), client),
                   "resolver: a query");
    }
}

Awaitable<void> ResolverService::answer_udp(std::shared_ptr<ResolverService> self,
                                            std::string message, udp::endpoint client) {
    const net::Ipv4Address address = client.address().to_v4();
    const Turn turn(self->queries_, self->query_count_, address, self->limits_.queries,
                    self->most_queries_of(address));
    // Whoever asks for more than its share waits and asks again.
    if (!turn.taken()) co_return;
    std::string reply = co_await self->resolve(address, std::move(message), false);
    if (reply.empty() || self->stopped_) co_return;
    co_await self->udp_.async_send_to(asio::buffer(reply), client, kAsTupleAwaitable);
}

Awaitable<void> ResolverService::serve_tcp(std::shared_ptr<ResolverService> self) {
    while (!self->stopped_) {
        auto client = co_await self->tcp_->accept();
        if (!client) {
            if (client.error().code() == ErrorCode::cancelled) co_return;
            co_await net::sleep_for(std::chrono::milliseconds(100));
            continue;
        }
        boost::system::error_code wrong;
        const auto address = asio::ip::make_address_v4((*client)->peer_address(), wrong);
        if (wrong || !self->range_.contains(address)) continue;
        std::shared_ptr<net::Stream> shared = std::move(*client);
        net::spawn(self->executor_, answer_tcp(self, std::move(shared), address),
                   "resolver: a connection");
    }
}

Awaitable<void> ResolverService::answer_tcp(std::shared_ptr<ResolverService> self,
                                            std::shared_ptr<net::Stream> client,
                                            net::Ipv4Address address) {
    const Turn turn(self->connections_, self->connection_count_, address, self->limits_.connections,
                    self->most_connections_of(address));
    if (!turn.taken()) co_return;
    net::Deadline deadline(self->executor_, self->limits_.idle, [client] { client->close(); });
    while (!self->stopped_) {
        auto message = co_await dns::read_framed(*client);
        if (!message) co_return;
        std::string reply;
        {
            const Turn query(self->queries_, self->query_count_, address, self->limits_.queries,
                             self->most_queries_of(address));
            if (!query.taken()) co_return;
            // The answer has its own limits of time.
            deadline.extend(self->limits_.patience * (self->limits_.tries + 1));
            reply = co_await self->resolve(address, std::move(*message), true);
        }
        if (reply.empty()) co_return;
        deadline.extend(self->limits_.idle);
        const std::string bytes = dns::framed(reply);
        auto sent = co_await net::write_all(*client, bytes);
        if (!sent) co_return;
    }
}

Awaitable<std::string> ResolverService::resolve(net::Ipv4Address client, std::string message,
                                                bool tcp) {
    auto query = dns::parse_query(message);
    // Not even an id to answer to, or nothing that a stub resolver sends.
    if (!query) co_return std::string();
    query->udp_size = std::min(query->udp_size, kMaxUdp);
    const std::size_t limit = tcp ? dns::kMaxMessage : query->udp_size;
    const auto& question = query->question;
    if (question.dns_class == dns::kClassInternet) {
        if (auto found = names_.find(client, question.name, settings().search)) {
            co_return dns::make_address_reply(message, *query, *found, kLocalTtl, limit);
        }
    }
    std::string reply = co_await ask(message, *query, tcp);
    if (reply.empty()) {
        co_return dns::make_reply(message, *query, dns::ResponseCode::server_failure);
    }
    reply = dns::with_id(reply, query->id);
    co_return tcp ? std::move(reply) : dns::fit_udp(reply, *query);
}

Awaitable<std::string> ResolverService::ask(std::string message, dns::Query query, bool tcp) {
    const std::vector<asio::ip::address> servers = settings().servers;
    if (servers.empty()) co_return std::string();
    for (int round = 0; round < limits_.tries && !stopped_; ++round) {
        const auto& server = servers[static_cast<std::size_t>(round) % servers.size()];
        auto reply = tcp ? co_await ask_tcp(server, message, query.question)
                         : co_await ask_udp(server, message, query.question);
        if (reply) co_return std::move(*reply);
        log::debug("a resolver does not answer", {{"reason", reply.error().message()}});
    }
    co_return std::string();
}

/// A socket of its own, so that its port is as hard to guess as the id.
Awaitable<Result<std::string>> ResolverService::ask_udp(asio::ip::address server,
                                                        std::string message,
                                                        dns::Question question) {
    auto socket = std::make_shared<udp::socket>(executor_);
    boost::system::error_code failed;
    const udp::endpoint there(server, upstream_port_);
    socket->open(there.protocol(), failed);
    if (!failed) socket->connect(there, failed);
    if (failed) co_return unanswered(server, failed.message());
    const std::uint16_t id = random_id();
    message = dns::with_id(message, id);
    net::Deadline deadline(executor_, limits_.patience, [socket] {
        boost::system::error_code ignored;
        socket->close(ignored);
    });
    auto [unsent, sent] = co_await socket->async_send(asio::buffer(message), kAsTupleAwaitable);
    if (unsent || sent != message.size()) co_return unanswered(server, unsent.message());
    std::string buffer(dns::kMaxMessage, '\0');
    for (int stray = 0; stray < kMaxStray; ++stray) {
        auto [lost, size] = co_await socket->async_receive(asio::buffer(buffer), kAsTupleAwaitable);
        if (lost) co_return unanswered(server, lost.message());
        const std::string_view got(buffer.data(), size);
        if (dns::answers(got, id, question)) co_return std::string(got);
    }
    co_return unanswered(server, "answers other questions");
}

Awaitable<Result<std::string>> ResolverService::ask_tcp(asio::ip::address server,
                                                        std::string message,
                                                        dns::Question question) {
    const std::string host = server.to_string();
    auto connected = co_await net::connect_tcp(host, upstream_port_, limits_.patience);
    if (!connected) co_return connected.error();
    const std::shared_ptr<net::Stream> stream = std::move(*connected);
    net::Deadline deadline(executor_, limits_.patience, [stream] { stream->close(); });
    const std::uint16_t id = random_id();
    const std::string bytes = dns::framed(dns::with_id(message, id));
    auto sent = co_await net::write_all(*stream, bytes);
    if (!sent) co_return sent.error();
    auto reply = co_await dns::read_framed(*stream);
    if (!reply) co_return reply.error();
    if (dns::answers(*reply, id, question)) co_return std::move(*reply);
    co_return unanswered(server, "answers another question");
}

}  // namespace opensandbox::runtime::native
