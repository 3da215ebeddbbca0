#include "runtime/native/network/egress_sockets.hpp"

#include "runtime/native/ground/listening_socket.hpp"
#include "support/scratch_directory.hpp"

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <thread>

using namespace opensandbox;
using namespace opensandbox::runtime::native;

namespace {

UniqueFd connect_to(std::uint16_t port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return fd;
}

}  // namespace

TEST_CASE("a port is listened on again while its last connections end", "[runtime][network]") {
    std::uint16_t port = 0;
    auto first = listen_on("127.0.0.1", port);
    REQUIRE(first.has_value());
    UniqueFd client = connect_to(port);
    UniqueFd served(::accept4(first->get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(served);
    // The side that closes first is the one that remembers the connection.
    served.reset();
    char byte = 0;
    REQUIRE(::recv(client.get(), &byte, 1, 0) == 0);
    client.reset();
    first->reset();

    auto second = listen_on("127.0.0.1", port);
    REQUIRE(second.has_value());
    CHECK(connect_to(port));
}

TEST_CASE("the egress API keeps its port when its holder ends late", "[runtime][egress]") {
    const test_support::ScratchDirectory scratch;
    const auto record = scratch.path / "egress-port";
    const net::Ipv4Address gateway = net::Ipv4Address::loopback();
    const auto listen = [](std::uint16_t& port) { return listen_on("127.0.0.1", port); };
    auto earlier = open_egress_sockets(gateway, std::nullopt, listen, record);
    REQUIRE(earlier.has_value());
    const std::uint16_t port = earlier->api_port;

    // The enforcer of a spawner that was killed holds the socket a little longer.
    std::jthread holder([held = std::move(earlier->api)]() mutable {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        held.reset();
    });
    *earlier = {};
    auto later = open_egress_sockets(gateway, std::nullopt, listen, record);
    REQUIRE(later.has_value());
    CHECK(later->api_port == port);
}
