#include "egress/filter/connection_cutter.hpp"

#include "unit/egress/rules/host_topology.hpp"
#include "unit/egress/rules/open_connection.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::test;
using namespace std::chrono_literals;
using rules::Scope;

namespace {

/// One sandbox, and a connection each that its policy lost and that it came to allow afterwards.
struct Changed {
    Changed() {
        net.add_outside("198.51.100.7");
        must(table.add(net.a.guarded(), names_only(), keep_all));
        must(table.learn("egra", "loses.test", {ip("192.0.2.2")}, {Scope()}, 300s));
        lost = std::make_unique<OpenConnection>(net.a.place, net.outside, "192.0.2.2", 8000);
        auto change = table.set_policy("egra", names_only(), [](const auto& name, const Scope&) {
            return name != "loses.test";
        });
        must(change);
        cut = std::make_unique<rules::ConnectionCut>(std::move(*change));
        must(table.learn("egra", "new.test", {ip("198.51.100.7")}, {Scope()}, 300s));
        opened = std::make_unique<OpenConnection>(net.a.place, net.outside, "198.51.100.7", 8000);
    }

    /// Has the cutter cut, with an interceptor to wait for or without.
    void finish(const ConnectionCutter::Current& current, bool after_interceptor) const {
        asio::io_context loop;
        asio::thread_pool pool(1);
        ConnectionCutter cutter(loop.get_executor(), pool);
        cutter.cut(*cut, current, after_interceptor);
        loop.run();
        count = cutter.count();
    }

    EgressTopology net;
    rules::HostTable table = net.open();
    std::unique_ptr<OpenConnection> lost;
    std::unique_ptr<OpenConnection> opened;
    std::unique_ptr<rules::ConnectionCut> cut;
    mutable std::uint64_t count = 0;
};

}  // namespace

TEST_CASE("what an address learned since a change of policy opened is not cut by that change") {
    const bool after_interceptor = GENERATE(false, true);
    const Changed changed;
    changed.finish([&] { return changed.table.cut("egra"); }, after_interceptor);
    CHECK(changed.count == 1);
    CHECK(changed.opened->carries("still"));
    CHECK(changed.lost->send_error("after") == ECONNRESET);
}

TEST_CASE("nothing is cut of a sandbox that went after its change of policy") {
    const Changed changed;
    changed.finish([] { return std::nullopt; }, false);
    CHECK(changed.count == 0);
    CHECK(changed.lost->carries("still"));
}
