#include "runtime/native/network/host_addresses.hpp"
#include "runtime/native/network/pasta.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace opensandbox;
using namespace opensandbox::runtime::native;

namespace {

PastaSettings settings_for(bool ipv4, bool ipv6) {
    PastaSettings settings;
    settings.program = "/usr/bin/pasta";
    settings.network_namespace = "/state/spawner/network";
    settings.ipv4 = ipv4;
    settings.ipv6 = ipv6;
    settings.tag = "12ab34";
    return settings;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
    return std::ranges::count(words, word) > 0;
}

/// The value of every option of that name.
std::vector<std::string> values(const std::vector<std::string>& words, const std::string& option) {
    std::vector<std::string> out;
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
        if (words[i] == option) out.push_back(words[i + 1]);
    return out;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("pasta hands on no port and maps nothing to the host's loopback", "[runtime][uplink]") {
    for (const bool ipv6 : {false, true}) {
        const Words words = pasta_arguments(settings_for(true, ipv6));
        CHECK(has(words, "--no-map-gw"));
        CHECK(has(words, "--netns-only"));
        for (const char* ports : {"--tcp-ports", "--udp-ports", "--tcp-ns", "--udp-ns"})
            CHECK(values(words, ports) == Words{"none"});
    }
}

TEST_CASE("pasta gets the families that the host has", "[runtime][uplink]") {
    const Words four = pasta_arguments(settings_for(true, false));
    CHECK(has(four, "--ipv4-only"));
    CHECK(values(four, "--address") == Words{"169.254.77.2"});
    const Words six = pasta_arguments(settings_for(false, true));
    CHECK(has(six, "--ipv6-only"));
    CHECK_FALSE(has(six, "--ipv4-only"));
    CHECK(values(six, "--address") == Words{"fd6f:7362:12ab:3401::2"});
    const Words both = pasta_arguments(settings_for(true, true));
    CHECK(values(both, "--gateway") == Words{"169.254.77.1", "fd6f:7362:12ab:3401::1"});
    CHECK_FALSE(has(both, "--ipv4-only"));
    CHECK_FALSE(has(both, "--ipv6-only"));
}

TEST_CASE("default routes are found in what the kernel says", "[runtime][uplink]") {
    const std::string head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n";
    const std::string local = "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
    const std::string out = "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
    CHECK_FALSE(has_default_route(""));
    CHECK_FALSE(has_default_route(head + local));
    CHECK(has_default_route(head + local + out));

    const std::string none(32, '0');
    const auto row = [&](const std::string& prefix, const std::string& link) {
        return none + " " + prefix + " " + none + " 00 " + none +
               " ffffffff 00000001 00000000 00200200       " + link + "\n";
    };
    CHECK_FALSE(has_default_route6(""));
    CHECK_FALSE(has_default_route6(row("00", "lo")));
    CHECK_FALSE(has_default_route6(row("40", "eth0")));
    CHECK(has_default_route6(row("00", "lo") + row("00", "eth0")));
}
