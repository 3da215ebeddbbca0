#include "kube/lease/leader_election.hpp"

#include "unit/kube/api_server.hpp"

using namespace opensandbox;
using namespace opensandbox::kube;
using namespace opensandbox::kube::testing;
using namespace std::chrono_literals;
using http::test::Loop;

namespace {

const std::string kPath = "/apis/coordination.k8s.io/v1/namespaces/default/leases/role";

/// One who wants to lead.
struct Candidate {
    Candidate(Loop& loop, const ApiServer& server, const std::string& name)
        : connection(loop.executor(), server.cluster(), hasty()),
          client(connection, name),
          election(client, settings(name), [this](bool now_leads) {
              leads = now_leads;
              ++changes;
          }) {
        net::spawn(loop.executor(), run(), "candidate");
    }

    static ElectionSettings settings(const std::string& name) {
        ElectionSettings settings;
        settings.lease = {"default", "role"};
        settings.identity = name;
        settings.duration = 2s;
        settings.renew_deadline = 1s;
        settings.retry = 50ms;
        return settings;
    }
    Awaitable<void> run() {
        co_await election.run();
        ended = true;
    }

    Connection connection;
    Client client;
    bool leads = false;
    bool ended = false;
    int changes = 0;
    LeaderElection election;
};

void until(Loop& loop, const std::function<bool()>& condition) {
    loop.run([&]() -> Awaitable<void> {
        while (!condition())
            co_await net::sleep_for(1ms);
    });
}

std::string holder(const ApiServer& server) {
    return std::string(server.at(kPath).at("spec").at("holderIdentity").get_string());
}

}  // namespace

TEST_CASE("one of two leads, and gives the lease back at its end") {
    Loop loop;
    ApiServer server(loop);
    Candidate first(loop, server, "first");
    until(loop, [&] { return first.leads; });
    Candidate second(loop, server, "second");
    until(loop, [&] { return second.election.leader() == "first"; });
    CHECK_FALSE(second.leads);
    CHECK(holder(server) == "first");
    first.election.stop();
    until(loop, [&] { return first.ended; });
    CHECK_FALSE(first.leads);
    CHECK(first.changes == 2);
    until(loop, [&] { return second.leads; });
    CHECK(holder(server) == "second");
    second.election.stop();
    until(loop, [&] { return second.ended; });
    CHECK(holder(server).empty());
}

TEST_CASE("who cannot renew does not lead any more before another does") {
    Loop loop;
    ApiServer server(loop);
    Candidate first(loop, server, "first");
    until(loop, [&] { return first.leads; });
    // As a server that takes nothing from the first: its lease is somebody else's for it.
    server.faults.assign(10'000, {500, {}});
    until(loop, [&] { return !first.leads; });
    CHECK(holder(server) == "first");
    server.faults.clear();
    until(loop, [&] { return first.leads; });
    first.election.stop();
    until(loop, [&] { return first.ended; });
}

TEST_CASE("a lease that is taken away is lost at once") {
    Loop loop;
    ApiServer server(loop);
    Candidate first(loop, server, "first");
    until(loop, [&] { return first.leads; });
    json::object taken = server.at(kPath);
    taken["spec"].get_object()["holderIdentity"] = "other";
    server.put(kPath, std::move(taken));
    until(loop, [&] { return !first.leads; });
    CHECK(first.election.leader() == "other");
    // The other never renews it; how its clock goes does not matter.
    until(loop, [&] { return first.leads; });
    CHECK(server.at(kPath).at("spec").at("leaseTransitions").to_number<int>() == 1);
    first.election.stop();
    until(loop, [&] { return first.ended; });
}

TEST_CASE("a lease is read and written with all six digits of its times") {
    Lease lease;
    lease.holder = "me";
    lease.duration = 15s;
    lease.acquired = lease.renewed = *parse_rfc3339("2026-01-02T03:04:05Z");
    json::object spec = write_lease(lease);
    CHECK(spec.at("renewTime").get_string() == "2026-01-02T03:04:05.000001Z");
    auto read = read_lease(
        {{"metadata", json::object{{"resourceVersion", "7"}}}, {"spec", std::move(spec)}});
    REQUIRE(read);
    CHECK(read->holder == "me");
    CHECK(read->duration == 15s);
    CHECK(read->resource_version == "7");
    auto empty = read_lease({{"metadata", json::object()}});
    REQUIRE(empty);
    CHECK(empty->holder.empty());
    CHECK_FALSE(read_lease({{"metadata", json::object()}, {"spec", 7}}));
}
