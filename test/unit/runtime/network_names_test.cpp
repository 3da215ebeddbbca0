#include "runtime/native/network/network_names.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using runtime::native::NetworkNames;

namespace {

net::Ipv4Address at(const std::string& text) {
    return boost::asio::ip::make_address_v4(text);
}

const auto alice = at("10.77.0.2");
const auto bob = at("10.77.0.3");
const auto eve = at("10.77.0.4");

}  // namespace

TEST_CASE("members of a network find each other by name, others do not") {
    NetworkNames names;
    names.set(alice, "t/lab", {"web", "id-1"});
    names.set(bob, "t/lab", {"db"});
    names.set(eve, "other/lab", {"eve"});
    using Found = std::vector<NetworkNames::Address>;
    CHECK(names.find(bob, "web", {}) == Found{alice});
    CHECK(names.find(bob, "id-1", {}) == Found{alice});
    CHECK(names.find(bob, "db", {}) == Found{bob});
    CHECK(names.find(bob, "web.lab", {}) == Found{alice});
    CHECK(names.find(bob, "web.example.org", {"example.org"}) == Found{alice});
    CHECK(names.find(bob, "web.lab.example.org", {"example.org"}) == Found{alice});
    CHECK_FALSE(names.find(bob, "web.example.org", {}));
    CHECK_FALSE(names.find(bob, "eve", {}));
    CHECK_FALSE(names.find(eve, "web", {}));
    CHECK_FALSE(names.find(at("10.77.0.9"), "web", {}));
}

TEST_CASE("a name that several go by has all their addresses, until they leave") {
    NetworkNames names;
    names.set(alice, "lab", {"worker"});
    names.set(bob, "lab", {"worker"});
    CHECK(names.find(alice, "worker", {})->size() == 2);
    names.set(bob, "", {});
    CHECK(names.find(alice, "worker", {})->size() == 1);
    CHECK_FALSE(names.find(bob, "worker", {}));
    names.set(alice, "lab", {"boss"});
    CHECK_FALSE(names.find(alice, "worker", {}));
    CHECK(names.find(alice, "boss", {}));
}

TEST_CASE("a name has the IPv6 address of its sandbox as well, and loses both with it") {
    const auto six = boost::asio::ip::make_address_v6("fd77::2");
    NetworkNames names;
    names.set(alice, "lab", {"web"}, {six});
    names.set(bob, "lab", {"web"});
    using Found = std::vector<NetworkNames::Address>;
    CHECK(names.find(bob, "web", {}) == Found{alice, six, bob});
    names.set(alice, "", {});
    CHECK(names.find(bob, "web", {}) == Found{bob});
}
