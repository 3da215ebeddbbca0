#pragma once

#include "egress/dns/proxy.hpp"
#include "net/dns/framing.hpp"
#include "net/dns/records.hpp"
#include "net/dns/wire_reader.hpp"
#include "net/task.hpp"
#include "support/catch_result.hpp"
#include "support/event_loop.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace opensandbox::egress::dns::test {

namespace codec = net::dns;
using asio::ip::udp;
using test_support::Loop;

inline constexpr auto as_tuple = asio::as_tuple(asio::use_awaitable);

inline asio::ip::address address(const std::string& text) {
    return asio::ip::make_address(text);
}

/// "a.b" in wire form.
inline std::string wire(std::string_view name) {
    std::string out;
    while (!name.empty()) {
        const std::size_t size = std::min(name.find('.'), name.size());
        out += static_cast<char>(size);
        out += name.substr(0, size);
        name.remove_prefix(std::min(size + 1, name.size()));
    }
    return out + '\0';
}

inline codec::ResourceRecord record(std::string_view owner, std::uint16_t type, std::string data,
                                    std::uint32_t ttl = 100) {
    codec::ResourceRecord made;
    made.owner = wire(owner);
    made.type = type;
    made.dns_class = codec::kClassInternet;
    made.ttl = ttl;
    made.data = std::move(data);
    return made;
}

inline codec::ResourceRecord address_record(std::string_view owner, const std::string& text,
                                            std::uint32_t ttl = 100) {
    const auto parsed = address(text);
    if (parsed.is_v4()) {
        const auto bytes = parsed.to_v4().to_bytes();
        return record(owner, codec::kTypeA, std::string(bytes.begin(), bytes.end()), ttl);
    }
    const auto bytes = parsed.to_v6().to_bytes();
    return record(owner, codec::kTypeAaaa, std::string(bytes.begin(), bytes.end()), ttl);
}

inline codec::ResourceRecord alias_record(std::string_view owner, std::string_view target,
                                          std::uint32_t ttl = 100) {
    return record(owner, codec::kTypeCname, wire(target), ttl);
}

inline codec::ResourceRecord soa_record(std::string_view owner, std::uint32_t ttl,
                                        std::uint32_t minimum) {
    std::string data = wire("ns.example") + wire("host.example");
    for (int i = 0; i < 4; ++i)
        codec::put_long_word(data, 1);
    codec::put_long_word(data, minimum);
    return record(owner, codec::kTypeSoa, data, ttl);
}

/// A response to a name and type with these answers.
inline codec::Response response(std::string_view name, std::uint16_t type,
                                std::vector<codec::ResourceRecord> answers = {},
                                std::uint16_t code = 0) {
    codec::Response made;
    made.name = wire(name);
    made.type = type;
    made.dns_class = codec::kClassInternet;
    made.code = code;
    made.answers = std::move(answers);
    return made;
}

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
                co_await state->udp.async_receive_from(asio::buffer(buffer), client, as_tuple);
            if (failed) co_return;
            const auto replies = answers(*state, buffer.substr(0, size), false);
            for (const std::string& reply : replies)
                co_await state->udp.async_send_to(asio::buffer(reply), client, as_tuple);
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

/// Policy as a test wants it: names allowed or not, all others by default.
class TestGate : public Gate {
  public:
    Verdict judge(ClientId client, std::string_view name, std::uint16_t type) override {
        ++judged;
        Verdict verdict;
        verdict.generation = generation;
        verdict.exact = exact;
        verdict.scope = scope;
        const auto rule = rules.find({client, std::string(name)});
        verdict.allowed = rule != rules.end() ? rule->second : allow_all;
        if (!verdict.allowed) verdict.reason = "no rule allows it";
        (void)type;
        return verdict;
    }
    Verdict judge_alias(ClientId client, std::string_view name, std::string_view alias,
                        std::uint16_t type) override {
        Verdict verdict = Gate::judge_alias(client, name, alias, type);
        if (!denied_aliases.contains(std::string(alias))) return verdict;
        verdict.allowed = false;
        verdict.reason = "alias denied";
        return verdict;
    }
    bool allows_inner(ClientId, std::string_view, const asio::ip::address& a) override {
        return allowed_inner.contains(a.to_string());
    }

    std::map<std::pair<ClientId, std::string>, bool> rules;
    bool allow_all = true;
    bool exact = false;
    std::uint64_t generation = 1;
    std::shared_ptr<const void> scope;
    std::set<std::string> denied_aliases;
    std::set<std::string> allowed_inner;
    std::size_t judged = 0;
};

struct LearnCall {
    LearnCall() = default;
    ClientId client = 0;
    std::string name;
    std::vector<LearnedAddress> addresses;
    std::shared_ptr<const void> scope;
};

class TestSink : public AddressSink {
  public:
    Awaitable<Status> learn(ClientId client, std::string name,
                            std::vector<LearnedAddress> addresses,
                            std::shared_ptr<const void> scope) override {
        LearnCall call;
        call.client = client;
        call.name = std::move(name);
        call.addresses = std::move(addresses);
        call.scope = std::move(scope);
        calls.push_back(call);
        if (meanwhile) co_await meanwhile();
        co_return status;
    }

    std::vector<LearnCall> calls;
    std::function<Awaitable<void>()> meanwhile;
    Status status;
};

/// A query with a random-looking id; `udp_size` 0 is without OPT record.
inline std::string query(std::string_view name, std::uint16_t type = codec::kTypeA,
                         std::uint16_t udp_size = 1232, std::uint16_t id = 0x4242) {
    return codec::make_query(id, wire(name), type, udp_size, false, false);
}

/// Asks over UDP from a socket of its own; empty when nothing comes within `patience`.
inline Awaitable<std::string> ask_udp(
    udp::endpoint server, std::string message,
    std::chrono::milliseconds patience = std::chrono::milliseconds(5000)) {
    auto executor = co_await asio::this_coro::executor;
    auto socket = std::make_shared<udp::socket>(executor, server.protocol());
    socket->connect(server);
    net::Deadline deadline(executor, patience, [socket] { socket->close(); });
    co_await socket->async_send(asio::buffer(message), as_tuple);
    std::string buffer(65536, '\0');
    auto [failed, size] = co_await socket->async_receive(asio::buffer(buffer), as_tuple);
    if (failed) co_return std::string();
    buffer.resize(size);
    co_return buffer;
}

/// Asks over a TCP connection of its own; empty when it ends instead.
inline Awaitable<std::string> ask_tcp(udp::endpoint server, std::string message) {
    auto connected = co_await net::connect_tcp(server.address().to_string(), server.port(),
                                               std::chrono::milliseconds(5000));
    if (!connected) co_return std::string();
    const std::string bytes = codec::framed(message);
    const Status sent = co_await net::write_all(**connected, bytes);
    if (!sent) co_return std::string();
    auto reply = co_await codec::read_framed(**connected);
    co_return reply ? std::move(*reply) : std::string();
}

inline codec::Response parsed(std::string_view message) {
    auto response = codec::parse_response(message);
    REQUIRE(response);
    return std::move(*response);
}

/// The addresses of a reply, in their order.
inline std::vector<std::string> addresses(std::string_view message) {
    std::vector<std::string> out;
    auto reply = codec::parse_reply(message);
    REQUIRE(reply);
    for (const auto& answer : reply->answers) {
        if (answer.address) out.push_back(answer.address->to_string());
    }
    return out;
}

/// The code of the extended error in a reply, and its text; -1 without one.
struct Explanation {
    Explanation() = default;
    int code = -1;
    std::string text;
};

inline Explanation explanation(std::string_view message) {
    Explanation found;
    const auto reply = codec::parse_reply(message);
    REQUIRE(reply);
    REQUIRE(reply->answers.empty());
    codec::WireReader reader(message, 12);
    (void)reader.name();
    (void)reader.long_word();
    if (reader.at() >= message.size()) return found;
    (void)reader.bytes(9);
    const std::size_t size = reader.word();
    if (size == 0) return found;
    REQUIRE(reader.word() == 15);
    const std::size_t length = reader.word();
    found.code = reader.word();
    found.text = reader.bytes(length - 2);
    REQUIRE(reader.good());
    REQUIRE(reader.at() == message.size());
    return found;
}

/// A proxy on loopback before scripted servers.
struct ProxyFixture {
    ProxyFixture() = default;
    Loop loop;
    std::shared_ptr<TestGate> gate = std::make_shared<TestGate>();
    std::shared_ptr<TestSink> sink = std::make_shared<TestSink>();
    std::vector<Denial> denials;
    ProxySettings settings;
    std::vector<std::unique_ptr<ScriptedServer>> servers;
    std::unique_ptr<Proxy> proxy;
    udp::endpoint endpoint;

    ScriptedServer& serve(ScriptedServer::Script script) {
        servers.push_back(std::make_unique<ScriptedServer>(loop.executor(), std::move(script)));
        settings.upstream.servers.push_back(servers.back()->upstream());
        return *servers.back();
    }
    void start(const Identify& identify = always(7), const std::string& at = "127.0.0.1") {
        Neighbours neighbours;
        neighbours.gate = gate;
        neighbours.sink = sink;
        neighbours.observer = [this](const Denial& denial) { denials.push_back(denial); };
        auto made = Proxy::create(loop.executor(), settings, neighbours);
        REQUIRE(made);
        proxy = std::move(*made);
        auto port = proxy->listen(address(at), 0, identify);
        REQUIRE(port);
        endpoint = udp::endpoint(address(at), *port);
    }
    [[nodiscard]] const Statistics& statistics() const { return proxy->statistics(); }
};

/// Answers every A query with one address.
inline ScriptedServer::Script always_address(const std::string& text, std::uint32_t ttl = 100) {
    return [text, ttl](const Asked& asked) {
        std::vector<codec::ResourceRecord> answers;
        answers.push_back(address_record(asked.query.question.name, text, ttl));
        return std::vector<std::string>{asked.reply(answers)};
    };
}

}  // namespace opensandbox::egress::dns::test
