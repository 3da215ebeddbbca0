#pragma once

#include "dns_messages.hpp"
#include "egress/dns/settings.hpp"
#include "net/dns/framing.hpp"
#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/catch.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace opensandbox::egress::dns::test {

using asio::ip::udp;

inline constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

/// What a scripted server got.
struct Asked {
    Asked() = default;
    std::string message;
    codec::Query query;
    bool tcp = false;

    /// The reply with the question as it came, letters included.
    [[nodiscard]] std::string reply(std::vector<codec::ResourceRecord> answers,
                                    std::uint16_t code = 0) const {
        codec::Response made;
        made.name = message.substr(12, query.question_end - 12 - 4);
        made.type = query.question.type;
        made.dns_class = query.question.dns_class;
        made.code = code;
        made.answers = std::move(answers);
        return codec::with_id(codec::encode_response(made).value().bytes, query.id);
    }
};

/// A resolver on loopback, UDP and TCP on one port, that answers as the test says: one message for
/// each string, over TCP the first only; nothing when there is none.
class ScriptedServer {
  public:
    using Script = std::function<std::vector<std::string>(const Asked&)>;

    ScriptedServer(asio::any_io_executor executor, Script script)
        : state_(std::make_shared<State>(executor, std::move(script))) {
        for (int attempt = 0; attempt < 16; ++attempt) {
            state_->udp = udp::socket(executor, udp::endpoint(address("127.0.0.1"), 0));
            auto listener =
                net::listen_tcp(executor, "127.0.0.1", state_->udp.local_endpoint().port());
            if (!listener) continue;
            state_->tcp = std::move(*listener);
            break;
        }
        REQUIRE(state_->tcp);
        net::spawn(executor, serve_udp(state_), "scripted server");
        net::spawn(executor, serve_tcp(state_), "scripted server");
    }
    ~ScriptedServer() { close(); }

    void close() {
        boost::system::error_code ignored;
        state_->udp.close(ignored);
        state_->tcp->close();
        for (const auto& stream : state_->streams)
            stream->close();
    }
    [[nodiscard]] UpstreamServer upstream(SocketHook hook = {}) const {
        return UpstreamServer(state_->udp.local_endpoint(), std::move(hook));
    }
    /// Queries that came, without probes.
    [[nodiscard]] const std::vector<Asked>& asked() const { return state_->asked; }
    [[nodiscard]] std::size_t connections() const { return state_->streams.size(); }
    [[nodiscard]] std::size_t probes() const { return state_->probes; }
    void script(Script script) { state_->script = std::move(script); }

  private:
    struct State {
        State(asio::any_io_executor e, Script s) : executor(e), udp(e), script(std::move(s)) {}
        asio::any_io_executor executor;
        udp::socket udp;
        std::unique_ptr<net::Listener> tcp;
        Script script;
        std::vector<Asked> asked;
        std::vector<std::shared_ptr<net::Stream>> streams;
        std::size_t probes = 0;
    };

    static std::vector<std::string> answers(State& state, std::string message, bool tcp) {
        auto query = codec::parse_query(message);
        if (!query) return {};
        Asked asked;
        asked.message = std::move(message);
        asked.query = *query;
        asked.tcp = tcp;
        if (query->question.name.empty() && query->question.type == codec::kTypeNs) {
            ++state.probes;
        } else {
            state.asked.push_back(asked);
        }
        return state.script(asked);
    }
    static Awaitable<void> serve_udp(std::shared_ptr<State> state) {
        std::string buffer(65536, '\0');
        while (true) {
            udp::endpoint client;
            auto [failed, size] =
                co_await state->udp.async_receive_from(asio::buffer(buffer), client, kAsTuple);
            if (failed) co_return;
            const auto replies = answers(*state, buffer.substr(0, size), false);
            for (const std::string& reply : replies)
                co_await state->udp.async_send_to(asio::buffer(reply), client, kAsTuple);
        }
    }
    static Awaitable<void> serve_tcp(std::shared_ptr<State> state) {
        while (true) {
            auto accepted = co_await state->tcp->accept();
            if (!accepted) co_return;
            std::shared_ptr<net::Stream> stream = std::move(*accepted);
            state->streams.push_back(stream);
            net::spawn(state->executor, serve_connection(state, stream), "scripted server");
        }
    }
    static Awaitable<void> serve_connection(std::shared_ptr<State> state,
                                            std::shared_ptr<net::Stream> stream) {
        while (true) {
            auto message = co_await codec::read_framed(*stream);
            if (!message) co_return;
            const auto replies = answers(*state, *message, true);
            if (replies.empty()) {
                stream->close();
                co_return;
            }
            const std::string bytes = codec::framed(replies.front());
            const Status sent = co_await net::write_all(*stream, bytes);
            if (!sent) co_return;
        }
    }

    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::egress::dns::test
