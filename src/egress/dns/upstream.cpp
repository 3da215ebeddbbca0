#include "egress/dns/upstream.hpp"

#include "net/dns/wire_reader.hpp"
#include "net/stream.hpp"
#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace opensandbox::egress::dns {

namespace {

using asio::ip::udp;
namespace codec = net::dns;

/// Replies that do not belong: somebody guesses, so ask where guessing does not help.
constexpr int kMaxStray = 16;
constexpr std::size_t kUdpBuffer = 4096;

Error unanswered(const UpstreamServer& server, ErrorCode code, std::string_view what) {
    return {code, server.endpoint.address().to_string() + ": " + std::string(what)};
}

std::uint16_t word_at(std::string_view message, std::size_t at) {
    return static_cast<std::uint16_t>(static_cast<unsigned char>(message[at]) << 8 |
                                      static_cast<unsigned char>(message[at + 1]));
}

void mix_case(std::string& name, RandomSource& random) {
    for (char& c : name) {
        if (c >= 'a' && c <= 'z' && (random.byte() & 1U) != 0) {
            c = static_cast<char>(c - 'a' + 'A');
        }
    }
}

}  // namespace

struct Upstream::Sent {
    Sent() = default;
    std::string message;
    std::size_t question_size = 0;
    bool mixed = false;  ///< letters are in random case

    /// Whether the letters came back in the case they were sent in.
    [[nodiscard]] bool is_echoed_in(std::string_view reply) const {
        if (word_at(reply, 4) == 0) return true;
        return reply.substr(codec::kHeaderSize, question_size) ==
               std::string_view(message).substr(codec::kHeaderSize, question_size);
    }
    [[nodiscard]] bool is_answered_by(std::string_view reply) const {
        if (reply.size() < codec::kHeaderSize || word_at(reply, 0) != word_at(message, 0) ||
            (static_cast<unsigned char>(reply[2]) & 0x80U) == 0) {
            return false;
        }
        // A server that does not understand the query may leave the question out.
        if (word_at(reply, 4) == 0) return (static_cast<unsigned char>(reply[3]) & 0x0fU) != 0;
        if (word_at(reply, 4) != 1 || reply.size() < codec::kHeaderSize + question_size) {
            return false;
        }
        const std::string_view asked =
            std::string_view(message).substr(codec::kHeaderSize, question_size);
        const std::string_view echoed = reply.substr(codec::kHeaderSize, question_size);
        const std::size_t name = question_size - 4;
        return echoed.substr(name) == asked.substr(name) &&
               codec::same_name(echoed.substr(0, name), asked.substr(0, name));
    }
};

Upstream::Upstream(asio::any_io_executor executor, UpstreamServer server,
                   const UpstreamSettings& settings)
    : executor_(executor),
      server_(std::move(server)),
      udp_size_(settings.udp_size),
      mixed_case_(settings.mixed_case),
      connections_(executor, server_, settings.connection_idle) {}

void Upstream::close() {
    connections_.close();
}

Upstream::Sent Upstream::make_message(const UpstreamQuestion& question, bool extended) {
    Sent sent;
    std::string name = question.name;
    if (mixed_case_) mix_case(name, random_);
    sent.message = codec::make_query(random_.word(), name, question.type,
                                     extended ? udp_size_ : std::uint16_t{0}, question.dnssec,
                                     question.checking_disabled);
    sent.question_size = name.size() + 4;
    sent.mixed = mixed_case_;
    return sent;
}

Awaitable<Result<std::string>> Upstream::over_udp(std::shared_ptr<Upstream> self, Sent sent,
                                                  Clock::time_point end) {
    const UpstreamServer& server = self->server_;
    auto socket = std::make_shared<udp::socket>(self->executor_);
    boost::system::error_code failed;
    socket->open(server.endpoint.protocol(), failed);
    if (failed) co_return unanswered(server, ErrorCode::unavailable, failed.message());
    if (server.hook) {
        const Status prepared = server.hook(socket->native_handle());
        if (!prepared) co_return prepared.error();
    }
    socket->connect(server.endpoint, failed);
    if (failed) co_return unanswered(server, ErrorCode::unavailable, failed.message());
    net::Deadline deadline(self->executor_, end - Clock::now(), [socket] {
        boost::system::error_code ignored;
        socket->close(ignored);
    });
    auto [unsent, size] =
        co_await socket->async_send(asio::buffer(sent.message), kAsTupleAwaitable);
    if (unsent) co_return unanswered(server, ErrorCode::unavailable, unsent.message());
    std::string buffer(kUdpBuffer, '\0');
    for (int stray = 0; stray < kMaxStray; ++stray) {
        auto [lost, got] = co_await socket->async_receive(asio::buffer(buffer), kAsTupleAwaitable);
        if (deadline.expired()) co_return unanswered(server, ErrorCode::timeout, "no answer");
        if (lost) co_return unanswered(server, ErrorCode::unavailable, lost.message());
        const std::string_view reply(buffer.data(), got);
        if (!sent.is_answered_by(reply)) continue;
        if (sent.mixed && !sent.is_echoed_in(reply)) {
            // Guessed by somebody, or the server does not care: TCP tells.
            co_return unanswered(server, ErrorCode::protocol, "changes the letters of names");
        }
        buffer.resize(got);
        co_return buffer;
    }
    co_return unanswered(server, ErrorCode::protocol, "answers other questions");
}

Awaitable<Result<std::string>> Upstream::over_tcp(std::shared_ptr<Upstream> self, Sent sent,
                                                  Clock::time_point end) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) co_return unanswered(self->server_, ErrorCode::timeout, "no answer");
    auto reply = co_await self->connections_.exchange(sent.message, left);
    if (reply && !sent.is_answered_by(*reply)) {
        co_return unanswered(self->server_, ErrorCode::protocol, "answers another question");
    }
    co_return reply;
}

Awaitable<Result<codec::Response>> Upstream::ask_once(std::shared_ptr<Upstream> self,
                                                      UpstreamQuestion question, bool extended,
                                                      Clock::time_point end) {
    const Sent sent = self->make_message(question, extended);
    auto reply = co_await over_udp(self, sent, end);
    if (!reply && reply.error().code() != ErrorCode::protocol) co_return reply.error();
    if (reply && word_at(*reply, 4) == 0) {
        codec::Response failure;
        failure.code = static_cast<unsigned char>((*reply)[3]) & 0x0fU;
        co_return failure;
    }
    if (reply) {
        auto response = codec::parse_response(*reply);
        if (response && !response->truncated) co_return response;
    }
    // Cut, garbled or drowned among strays: TCP tells.
    const Sent again = self->make_message(question, extended);
    auto whole = co_await over_tcp(self, again, end);
    if (!whole) co_return whole.error();
    auto response = codec::parse_response(*whole);
    if (response && response->truncated) {
        co_return unanswered(self->server_, ErrorCode::protocol, "a cut answer over TCP");
    }
    co_return response;
}

Awaitable<Result<codec::Response>> Upstream::ask(std::shared_ptr<Upstream> self,
                                                 UpstreamQuestion question,
                                                 std::chrono::milliseconds timeout) {
    const auto end = Clock::now() + timeout;
    auto response = co_await ask_once(self, question, true, end);
    const auto not_understood = static_cast<std::uint16_t>(codec::ResponseCode::format_error);
    const auto not_implemented = static_cast<std::uint16_t>(codec::ResponseCode::not_implemented);
    if (response && (response->code == not_understood || response->code == not_implemented)) {
        // A server from before EDNS.
        response = co_await ask_once(self, question, false, end);
    }
    co_return response;
}

Awaitable<bool> Upstream::probe(std::shared_ptr<Upstream> self, UpstreamQuestion question,
                                std::chrono::milliseconds timeout) {
    const Sent sent = self->make_message(question, true);
    auto reply = co_await over_udp(self, sent, Clock::now() + timeout);
    co_return reply.has_value();
}

}  // namespace opensandbox::egress::dns
