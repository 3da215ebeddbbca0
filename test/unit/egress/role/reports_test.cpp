#include "egress/role/host_figures.hpp"
#include "sidecar_world.hpp"

#include <future>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;
using namespace std::chrono_literals;
using Catch::Contains;

TEST_CASE("metrics reach their collector where the sandbox reaches nothing", "[egress]") {
    SidecarWorld world;
    world.adjust = [](SidecarSettings& settings) {
        settings.options.sandbox_id = "box-7";
        settings.options.extra_attributes = {{"team", "red"}};
        settings.otlp.emplace();
        settings.otlp->endpoint.origin = http::Origin("192.0.2.2", kPort);
        settings.otlp->endpoint.path = "/v1/metrics";
        settings.otlp->headers.set("X-Scope", "a");
        settings.otlp->interval = 20ms;
    };
    world.with_sidecar([&](Sidecar&) -> Awaitable<void> {
        CHECK(co_await query("evil") == 3);
        auto taken = std::async(std::launch::async, [&] {
            const UniqueFd peer = world.listener.accept();
            std::string request;
            while (opensandbox::test::wait_for(peer.get(), POLLIN)) {
                char piece[4096];
                const ssize_t got = ::recv(peer.get(), piece, sizeof piece, 0);
                if (got <= 0) break;
                request.append(piece, static_cast<std::size_t>(got));
                const std::size_t head = request.find("\r\n\r\n");
                const std::size_t length = request.find("Content-Length: ");
                if (head == std::string::npos || length == std::string::npos) continue;
                if (request.size() - head - 4 >= std::stoul(request.substr(length + 16))) break;
            }
            const std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            (void)::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
            return request;
        });
        while (taken.wait_for(0s) != std::future_status::ready)
            co_await net::sleep_for(5ms);
        const std::string request = taken.get();
        CHECK_THAT(request, Catch::StartsWith("POST /v1/metrics HTTP/1.1") &&
                                Contains("application/x-protobuf") && Contains("X-Scope: a"));
        for (const char* part :
             {"opensandbox-egress-", "opensandbox/egress", "egress.dns.query.duration",
              "egress.dns.query.failed_total", "egress.policy.denied_total",
              "egress.nftables.rules.count", "egress.nftables.updates.count",
              "egress.nftables.updates.failed_total", "egress.system.memory.usage_bytes",
              "egress.system.cpu.utilization", "sandbox_id", "box-7", "team", "red"}) {
            INFO(part);
            CHECK(request.find(part) != std::string::npos);
        }
        CHECK(world.reach() != 0);
    });
}

TEST_CASE("figures of the host are read from /proc", "[egress]") {
    const std::string_view memory =
        "MemTotal:        1000 kB\nMemFree:  1 kB\nMemAvailable:     400 kB\n";
    const auto before = parse_host_figures(memory, "cpu  10 0 10 70 10 0 0 0 5 0\ncpu0 1 1\n");
    CHECK(before.memory_used == 600 * 1024);
    CHECK(before.busy_ticks == 20);
    CHECK(before.all_ticks == 100);
    const auto after = parse_host_figures(memory, "cpu  40 0 10 120 30 0 0 0 5 0\n");
    CHECK(after.cpu_share(before) == 0.3);
    CHECK(before.cpu_share(after) == 0);
    CHECK(parse_host_figures("", "").memory_used == 0);
    CHECK(read_host_figures().all_ticks > 0);
}
