#include "egress/dns/default_upstreams.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace opensandbox::egress::dns;

namespace {

std::vector<std::string> upstreams(std::string_view resolv_conf) {
    std::vector<std::string> out;
    for (const auto& server : default_upstreams(resolv_conf)) {
        CHECK(server.port() == 53);
        out.push_back(server.address().to_string());
    }
    return out;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("without an upstream named, those of resolv.conf are used") {
    CHECK(upstreams("nameserver 127.0.0.11\nnameserver 192.0.2.1\nnameserver ::1\n"
                    "nameserver 2001:db8::1\nnameserver 192.0.2.1\nnameserver 0.0.0.0\n") ==
          Texts{"192.0.2.1", "2001:db8::1", "127.0.0.11", "::1"});
    CHECK(upstreams("search example\n") == Texts{"8.8.8.8"});
    std::string many;
    for (int i = 1; i <= 12; ++i)
        many += "nameserver 192.0.2." + std::to_string(i) + "\n";
    CHECK(upstreams(many).size() == 10);
}
