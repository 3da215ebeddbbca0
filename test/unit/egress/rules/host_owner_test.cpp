#include "net/netlink_message.hpp"
#include "unit/egress/rules/host_topology.hpp"
#include "unit/egress/rules/open_connection.hpp"

#include <catch2/catch.hpp>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>

using namespace opensandbox;
using namespace opensandbox::test;
using namespace std::chrono_literals;
using rules::Scope;

namespace {

/// What `nft flush ruleset` sends: delete all tables.
Status flush_ruleset(const TestNamespace& place) {
    return place.run([]() -> Status {
        auto socket = net::NetlinkSocket::open(NETLINK_NETFILTER).value();
        const auto header = [](net::NetlinkMessage& message, std::uint32_t sequence,
                               std::uint16_t subsystem) {
            auto& fields = message.header<nfgenmsg>();
            fields.nfgen_family = AF_UNSPEC;
            fields.res_id = htons(subsystem);
            message.head().nlmsg_flags |= NLM_F_REQUEST;
            message.head().nlmsg_seq = sequence;
        };
        net::NetlinkMessage begin(NFNL_MSG_BATCH_BEGIN, 0);
        net::NetlinkMessage flush(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE, NLM_F_ACK);
        net::NetlinkMessage end(NFNL_MSG_BATCH_END, 0);
        header(begin, 1, NFNL_SUBSYS_NFTABLES);
        header(flush, 2, 0);
        header(end, 3, NFNL_SUBSYS_NFTABLES);
        std::vector<std::uint8_t> datagram;
        for (const auto* message : {&begin, &flush, &end})
            datagram.insert(datagram.end(), message->bytes().begin(), message->bytes().end());
        const auto verdicts = socket.transact(datagram, "flush");
        if (!verdicts) return verdicts.error();
        for (const auto& verdict : *verdicts)
            if (verdict.error != 0) return net::netlink_error(verdict, "flush");
        return {};
    });
}

/// A process that owns the table until it is killed. It opens it, adds sandbox a, learns one
/// address, and tells.
class Owner {
  public:
    explicit Owner(const EgressTopology& net) {
        int ends[2];
        checked(::pipe(ends), "pipe");
        UniqueFd told(ends[0]);
        pid_ = checked(::fork(), "fork");
        if (pid_ == 0) own(net, ends[1]);
        ::close(ends[1]);
        char done = 0;
        if (::read(told.get(), &done, 1) != 1 || done != 'y')
            throw std::runtime_error("the owner failed");
    }
    ~Owner() { kill(); }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;

    void kill() {
        if (pid_ == 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }

  private:
    [[noreturn]] static void own(const EgressTopology& net, int tell) {
        if (::setns(net.host.fd(), CLONE_NEWNET) != 0) ::_exit(1);
        auto table = rules::HostTable::open(net.options());
        const bool done =
            table && table->add(net.a.guarded(), names_only(), keep_all).has_value() &&
            table->learn("egra", "x.test", {ip("192.0.2.2"), ip("fd78::2")}, {Scope()}, 300s)
                .has_value();
        if (::write(tell, done ? "y" : "n", 1) != 1) ::_exit(1);
        for (;;)
            ::pause();
    }

    pid_t pid_ = 0;
};

bool only_x(const std::string& name, const Scope&) {
    return name == "x.test";
}

}  // namespace

TEST_CASE("a foreign flush of the ruleset leaves the table alone") {
    EgressTopology net;
    net::nft::Transaction other;
    other.add_table(net::nft::Family::inet, "other");
    auto socket = net.host.run([] { return net::NetlinkSocket::open(NETLINK_NETFILTER).value(); });
    other.commit(socket).value();
    auto table = net.open();
    must(table.add(net.a.guarded(), names_only(), keep_all));
    must(flush_ruleset(net.host));
    CHECK(net::nft::count_table(socket, "other").value().tables == 0);
    CHECK(net::nft::count_table(socket, "egress_test").value().tables == 2);
    const Listener listener(net.outside, "192.0.2.2", 8000);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == ECONNREFUSED);
}

TEST_CASE("while one owns the table, no other may change it") {
    EgressTopology net;
    const Owner owner(net);
    const auto second = net.host.run([&] {
        const auto opened = rules::HostTable::open(net.options());
        return opened ? ErrorCode::internal : opened.error().code();
    });
    CHECK(second == ErrorCode::permission_denied);
}

TEST_CASE("when its owner is killed the table stays, and the next takes it over as it is") {
    EgressTopology net;
    net.add_outside("198.51.100.7");
    Owner owner(net);
    const Listener denied(net.outside, "198.51.100.7", 8000);
    const OpenConnection open(net.a.place, net.outside, "192.0.2.2", 8000);
    owner.kill();
    CHECK(connect_to(net.a.place, "198.51.100.7", 8000) == ECONNREFUSED);
    CHECK(connect_to(net.a.place, "192.0.2.2", 53) == ECONNREFUSED);
    CHECK(open.carries("without an owner"));

    auto table = net.open();
    CHECK(connect_to(net.a.place, "198.51.100.7", 8000) == ECONNREFUSED);
    CHECK(table.unclaimed() == std::vector<std::string>{"egra"});
    CHECK(table.learned().names("egra", ip("192.0.2.2")) == std::vector<std::string>{"x.test"});
    // What was learned stays open even before the sandbox is known again, and after.
    const Listener learned(net.outside, "192.0.2.2", 8001);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8001) == 0);
    const auto cut = table.add(net.a.guarded(), names_only(), only_x);
    must(cut);
    CHECK(cut->run().value() == 0);
    CHECK(open.carries("with another owner"));
    CHECK(connect_to(net.a.place, "192.0.2.2", 8001) == 0);
    CHECK(connect_to(net.a.place, "198.51.100.7", 8000) == ECONNREFUSED);
    CHECK(table.unclaimed().empty());
    const auto lost = table.revoke("egra", [](const std::string&, const Scope&) { return false; });
    must(lost);
    CHECK(lost->run().value() == 3);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8001) == ECONNREFUSED);
}

TEST_CASE("a table taken over may say other things of the host and of its sandboxes") {
    EgressTopology net;
    Owner owner(net);
    owner.kill();
    auto options = net.options();
    options.dns_port = 5454;
    auto table = net.open(options);
    const Receiver names(net.host, "10.77.0.1", 5454);
    send_datagram(net.a.place, net.a.v4, "9.9.9.9", 53, "query");
    CHECK(names.next() == "query");

    rules::PolicyRules policy;
    policy.allow_by_default = true;
    policy.refuse_private = false;
    must(table.add(net.a.guarded(), policy, only_x));
    const Listener listener(net.outside, "192.0.2.2", 8000);
    CHECK(connect_to(net.a.place, "192.0.2.2", 8000) == 0);
    // A sandbox that is gone is cleared away.
    must(table.remove_sandbox("egra"));
    CHECK(table.learned().size() == 0);
}

TEST_CASE("under traffic not one packet gets to a denied target while owners die and follow") {
    EgressTopology net;
    net.add_outside("198.51.100.7");
    const Receiver denied(net.outside, "198.51.100.7", 9000);
    std::atomic<bool> done = false;
    std::atomic<int> sent = 0;
    auto first = std::make_unique<Owner>(net);
    std::thread sender([&] {
        net.a.place.run([&] {
            const SocketAddress target("198.51.100.7", 9000);
            while (!done) {
                const auto fd = open_socket(target, SOCK_DGRAM);
                ::sendto(fd.get(), "x", 1, 0, target.get(), target.size);
                ++sent;
            }
        });
    });
    for (int turn = 0; turn < 3; ++turn) {
        first->kill();
        first.reset();
        {
            auto table = net.open();
            CHECK(table.add(net.a.guarded(), names_only(), keep_all).has_value());
        }
        // The owner has gone in peace, this time.
        auto table = net.open();
        CHECK(table.add(net.a.guarded(), names_only(), keep_all).has_value());
        must(table.remove_sandbox("none"));
        {
            auto closed = std::move(table);
        }
        first = std::make_unique<Owner>(net);
    }
    done = true;
    sender.join();
    CHECK(sent > 100);
    first->kill();
    // Whatever came through would be read before this.
    net.host.run([] { must(rules::HostTable::remove("egress_test")); });
    send_datagram(net.a.place, net.a.v4, "198.51.100.7", 9000, "open again");
    CHECK(denied.next() == "open again");
}
