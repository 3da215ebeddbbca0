#include "egress/guard/own_address.hpp"

#include "unit/egress/rules/host_topology.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::test;
using egress::is_own_address;

TEST_CASE("what a host sends to its own addresses stays on it", "[egress]") {
    const EgressTopology net;
    net.host.run([] {
        for (const char* own : {"127.0.0.1", "127.9.9.9", "0.0.0.0", "192.0.2.1", "10.77.0.1",
                                "::1", "::", "fd78::1", "fd77::1", "::ffff:192.0.2.1"}) {
            CAPTURE(own);
            CHECK(is_own_address(ip(own)));
        }
        // Of a sandbox, of the outside, and of nobody.
        for (const char* other :
             {"10.77.0.2", "192.0.2.2", "203.0.113.1", "fd77::2", "fd78::2", "2a00:5300::1"}) {
            CAPTURE(other);
            CHECK_FALSE(is_own_address(ip(other)));
        }
    });
}
