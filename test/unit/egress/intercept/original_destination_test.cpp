#include "egress/intercept/core/original_destination.hpp"

#include "net/nftables.hpp"
#include "support/catch_result.hpp"
#include "support/network_namespace.hpp"

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <linux/netlink.h>
#include <net/if.h>
#include <sys/ioctl.h>

using namespace opensandbox;
using namespace opensandbox::egress;
using opensandbox::test::TestNamespace;

namespace {

sockaddr_in loopback(const char* host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, host, &address.sin_addr);
    return address;
}

void raise_loopback() {
    UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    request.ifr_name[0] = 'l';
    request.ifr_name[1] = 'o';
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    REQUIRE(::ioctl(fd.get(), SIOCSIFFLAGS, &request) == 0);
}

}  // namespace

TEST_CASE("a redirected connection tells where its client wanted to go", "[egress]") {
    TestNamespace place;
    UniqueFd redirected;
    UniqueFd direct;
    UniqueFd first;
    UniqueFd second;
    place.run([&] {
        raise_loopback();
        UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in own = loopback("127.0.0.1", 0);
        socklen_t size = sizeof(own);
        auto* generic = reinterpret_cast<sockaddr*>(&own);
        REQUIRE(::bind(listener.get(), generic, size) == 0);
        REQUIRE(::listen(listener.get(), 4) == 0);
        REQUIRE(::getsockname(listener.get(), generic, &size) == 0);
        auto socket = net::NetlinkSocket::open(NETLINK_NETFILTER);
        REQUIRE(socket);
        net::nft::Transaction change;
        change.add_table(net::nft::Family::inet, "t");
        change.add_base_chain(net::nft::Family::inet, "t", "out", "nat", net::nft::Hook::output,
                              -100);
        net::nft::Rule rule;
        rule.is_ipv4()
            .destination(boost::asio::ip::make_address_v4("127.0.0.9"), 32)
            .transport(IPPROTO_TCP);
        rule.translate_destination(boost::asio::ip::make_address_v4("127.0.0.1"),
                                   ntohs(own.sin_port));
        change.add_rule(net::nft::Family::inet, "t", "out", rule);
        REQUIRE(change.commit(*socket));
        auto dial = [&](sockaddr_in to) {
            UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0);
            return fd;
        };
        first = dial(loopback("127.0.0.9", 443));
        redirected = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        second = dial(own);
        direct = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        return 0;
    });
    auto target = redirected_destination(redirected.get());
    REQUIRE(target);
    CHECK(target->address().to_string() == "127.0.0.9");
    CHECK(target->port() == 443);
    auto loop = redirected_destination(direct.get());
    REQUIRE_FALSE(loop);
    CHECK(loop.error().code() == ErrorCode::not_found);
}

TEST_CASE("what is no connection has no destination", "[egress]") {
    CHECK_FALSE(redirected_destination(-1));
    UniqueFd local(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    CHECK_FALSE(redirected_destination(local.get()));
}
