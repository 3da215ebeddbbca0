#include "net/packet_log.hpp"
#include "support/event_loop.hpp"
#include "unit/egress/rules/host_topology.hpp"
#include "unit/egress/rules/raw_frames.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

using namespace opensandbox;
using namespace opensandbox::test;
using namespace std::chrono_literals;

namespace {

std::unique_ptr<net::PacketLog> open_log(const EgressTopology& net,
                                         const asio::any_io_executor& executor) {
    return net.host.run([&] { return net::PacketLog::open(executor, 7).value(); });
}

}  // namespace

TEST_CASE("the log of refusals says which sandbox, what, whither, when and why") {
    EgressTopology net;
    auto table = net.open();
    rules::PolicyRules policy;
    must(table.add(net.a.guarded(), policy, keep_all));
    test_support::Loop loop;
    const auto log = open_log(net, loop.executor());
    const auto begin = std::chrono::system_clock::now() - 1s;
    connect_to(net.a.place, "192.0.2.2", 8000);
    connect_to(net.a.place, "fd78::2", 8001);
    datagram_refusal(net.a.place, "192.0.2.2", 853);
    connect_to(net.a.place, "192.0.2.1", 22);
    std::vector<net::LoggedPacket> told;
    loop.run([&]() -> Awaitable<void> {
        while (told.size() < 4) {
            auto packet = co_await log->next();
            told.push_back(std::move(packet).value());
        }
    });
    for (const auto& packet : told) {
        CHECK(packet.link == "egra");
        CHECK(packet.lost == 0);
        CHECK(packet.time >= begin);
        CHECK(packet.time <= std::chrono::system_clock::now() + 1s);
    }
    CHECK(told[0].prefix == "egress-policy");
    CHECK(told[0].source == ip(net.a.v4));
    CHECK(told[0].destination == ip("192.0.2.2"));
    CHECK(told[0].protocol == IPPROTO_TCP);
    CHECK(told[0].destination_port == 8000);
    CHECK(told[0].source_port != 0);
    CHECK(told[0].outgoing_link == "out");
    CHECK(told[1].prefix == "egress-private");
    CHECK(told[1].destination == ip("fd78::2"));
    CHECK(told[1].destination_port == 8001);
    CHECK(told[2].prefix == "egress-dot");
    CHECK(told[2].protocol == IPPROTO_UDP);
    CHECK(told[2].destination_port == 853);
    CHECK(told[3].prefix == "egress-host");
    CHECK(told[3].outgoing_link.empty());
}

TEST_CASE("the log tells of forged sources, too") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    test_support::Loop loop;
    const auto log = open_log(net, loop.executor());
    const auto& pair = net.a.pair;
    REQUIRE(send_frame(pair.b,
                       udp_frame(pair.b.mac, pair.a.mac, "fd77::3", "fd78::2", 9000, "x")) == 0);
    loop.run([&]() -> Awaitable<void> {
        const auto packet = co_await log->next();
        CHECK(packet.value().prefix == "egress-spoofed");
        CHECK(packet.value().link == "egra");
        CHECK(packet.value().source == ip("fd77::3"));
        CHECK(packet.value().destination_port == 9000);
    });
}

TEST_CASE("a sandbox that is refused without end does not flood the log, nor silence others") {
    EgressTopology net;
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    must(table.add(net.b.guarded(), names_only(), keep_all));
    test_support::Loop loop;
    const auto log = open_log(net, loop.executor());
    for (int i = 0; i < 300; ++i)
        connect_to(net.a.place, "192.0.2.2", 8000);
    connect_to(net.b.place, "192.0.2.2", 8000);
    int of_a = 0;
    bool of_b = false;
    loop.run([&]() -> Awaitable<void> {
        while (!of_b) {
            auto packet = co_await log->next();
            of_b = packet.value().link == "egrb";
            if (!of_b) ++of_a;
        }
    });
    CHECK(of_a >= 10);
    CHECK(of_a < 200);
    CHECK(table.refused(rules::Reason::policy).value() == 301);
}

TEST_CASE("a reader that is late is told how much it missed") {
    EgressTopology net;
    auto options = net.options();
    options.log.per_second = 100'000;
    options.log.burst = 100'000;
    auto table = net.open(options);
    must(table.add(net.a.guarded(), names_only(), keep_all));
    test_support::Loop loop;
    const auto log = open_log(net, loop.executor());
    constexpr std::uint64_t kSent = 6000;
    net.a.place.run([] {
        for (std::uint64_t i = 0; i < kSent; ++i) {
            const SocketAddress target("192.0.2.2", 9000);
            const auto fd = open_socket(target, SOCK_DGRAM);
            checked(static_cast<int>(::sendto(fd.get(), "x", 1, 0, target.get(), target.size)),
                    "sendto");
        }
    });
    // The kernel tells no more until all that it held was read.
    std::atomic<bool> last = false;
    std::thread later([&] {
        while (!last) {
            connect_to(net.a.place, "fd78::2", 1);
            std::this_thread::sleep_for(20ms);
        }
    });
    std::uint64_t read = 0;
    std::uint64_t lost = 0;
    loop.run([&]() -> Awaitable<void> {
        while (!last) {
            auto packet = co_await log->next();
            ++read;
            lost += packet.value().lost;
            last = packet.value().destination_port == 1;
        }
    });
    last = true;
    later.join();
    CHECK(lost > 0);
    CHECK(read < kSent);
    CHECK(read + lost > kSent);
}

TEST_CASE("a group of the log has one reader, and a closed log tells no more") {
    EgressTopology net;
    test_support::Loop loop;
    const auto log = open_log(net, loop.executor());
    const auto second =
        net.host.run([&] { return net::PacketLog::open(loop.executor(), 7).error().code(); });
    CHECK(second == ErrorCode::permission_denied);
    loop.run([&]() -> Awaitable<void> {
        log->close();
        const auto packet = co_await log->next();
        CHECK(packet.error().code() == ErrorCode::cancelled);
    });
}

TEST_CASE("what is no entry of the log is not read as one") {
    CHECK_FALSE(net::parse_log_entry({}).has_value());
    const std::vector<std::uint8_t> noise(64, 0);
    CHECK_FALSE(net::parse_log_entry(noise).has_value());
}
