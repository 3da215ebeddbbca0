#pragma once

#include "egress/dns/proxy.hpp"
#include "scripted_server.hpp"
#include "support/catch_result.hpp"
#include "support/event_loop.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace opensandbox::egress::dns::test {

using test_support::Loop;

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
    Verdict judge_chain(ClientId client, const std::vector<std::string>& names,
                        std::uint16_t type) override {
        chains.push_back(names);
        Verdict verdict = judge(client, names.front(), type);
        if (chain_scope) verdict.scope = chain_scope;
        for (const std::string& name : names) {
            if (!denied_aliases.contains(name)) continue;
            verdict.allowed = false;
            verdict.reason = "alias denied";
        }
        return verdict;
    }
    bool allows_inner(ClientId, std::string_view, const asio::ip::address& a) override {
        return allowed_inner.contains(a.to_string());
    }

    std::map<std::pair<ClientId, std::string>, bool> rules;
    bool allow_all = true;
    bool exact = false;
    std::uint64_t generation = 1;
    std::shared_ptr<const VerdictScope> scope;
    std::set<std::string> denied_aliases;
    std::shared_ptr<const VerdictScope> chain_scope;
    std::vector<std::vector<std::string>> chains;
    std::set<std::string> allowed_inner;
    std::size_t judged = 0;
};

struct LearnCall {
    LearnCall() = default;
    ClientId client = 0;
    std::string name;
    std::vector<LearnedAddress> addresses;
    std::shared_ptr<const VerdictScope> scope;
};

class TestSink : public AddressSink {
  public:
    Awaitable<Status> learn(ClientId client, std::string name,
                            std::vector<LearnedAddress> addresses,
                            std::shared_ptr<const VerdictScope> scope) override {
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
    co_await socket->async_send(asio::buffer(message), kAsTuple);
    std::string buffer(65536, '\0');
    auto [failed, size] = co_await socket->async_receive(asio::buffer(buffer), kAsTuple);
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
