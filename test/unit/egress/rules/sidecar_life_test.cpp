#include "egress/rules/redirection_check.hpp"
#include "net/packet_log.hpp"
#include "support/event_loop.hpp"
#include "unit/egress/rules/open_connection.hpp"
#include "unit/egress/rules/sidecar_topology.hpp"

#include <catch2/catch.hpp>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace opensandbox;
using namespace opensandbox::test;
using namespace std::chrono_literals;
using rules::Scope;

namespace {

/// Runs this in a process of its own inside the namespace, which is killed with the object once it
/// told that it succeeded.
class Child {
  public:
    template <class Work>
    Child(const TestNamespace& place, const Work& work) {
        int ends[2];
        checked(::pipe(ends), "pipe");
        const UniqueFd told(ends[0]);
        pid_ = checked(::fork(), "fork");
        if (pid_ == 0) {
            if (::setns(place.fd(), CLONE_NEWNET) != 0) ::_exit(1);
            if (::write(ends[1], work() ? "y" : "n", 1) != 1) ::_exit(1);
            for (;;)
                ::pause();
        }
        ::close(ends[1]);
        char answer = 'n';
        checked(static_cast<int>(::read(told.get(), &answer, 1)), "read");
        succeeded_ = answer == 'y';
    }
    ~Child() { kill(); }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    [[nodiscard]] bool succeeded() const { return succeeded_; }
    void kill() {
        if (pid_ == 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }

  private:
    pid_t pid_ = 0;
    bool succeeded_ = false;
};

/// Answers every query with its own bytes and the bit of an answer.
class Resolver {
  public:
    Resolver(const TestNamespace& place, const std::string& address)
        : fd_(bind_socket(place, address, 15353, SOCK_DGRAM)), thread_([this] { serve(); }) {}
    ~Resolver() {
        done_ = true;
        thread_.join();
    }

  private:
    void serve() {
        while (!done_) {
            pollfd entry{fd_.get(), POLLIN, 0};
            if (::poll(&entry, 1, 20) != 1) continue;
            std::uint8_t query[512];
            sockaddr_storage peer{};
            socklen_t size = sizeof(peer);
            const auto length = ::recvfrom(fd_.get(), query, sizeof(query), 0,
                                           reinterpret_cast<sockaddr*>(&peer), &size);
            if (length < 12) continue;
            query[2] |= 0x80;
            ::sendto(fd_.get(), query, static_cast<std::size_t>(length), 0,
                     reinterpret_cast<sockaddr*>(&peer), size);
        }
    }

    UniqueFd fd_;
    std::atomic<bool> done_ = false;
    std::thread thread_;
};

bool redirection_works(const TestNamespace& place) {
    return place.run([] {
        bool works = false;
        test_support::Loop loop;
        loop.run([&]() -> Awaitable<void> {
            works = (co_await rules::verify_redirection(300ms)).has_value();
        });
        return works;
    });
}

/// A control group of the test's own, under the one that this process is in.
class TestGroup {
  public:
    TestGroup() {
        std::ifstream mounts("/proc/self/mounts");
        for (std::string line; std::getline(mounts, line);) {
            std::istringstream words(line);
            std::string device, path, kind;
            words >> device >> path >> kind;
            if (kind == "cgroup2" && path_.empty()) path_ = path;
        }
        if (path_.empty()) throw std::runtime_error("no unified hierarchy of control groups");
        path_ += "/egress-test-" + std::to_string(::getpid());
        std::filesystem::create_directory(path_);
    }
    ~TestGroup() {
        std::error_code ignored;
        for (int i = 0; i < 100 && !std::filesystem::remove(path_, ignored); ++i)
            std::this_thread::sleep_for(20ms);
    }
    TestGroup(const TestGroup&) = delete;
    TestGroup& operator=(const TestGroup&) = delete;

    [[nodiscard]] std::uint64_t id() const {
        struct stat folder{};
        checked(::stat(path_.c_str(), &folder), "stat");
        return folder.st_ino;
    }
    void enter() const {
        std::ofstream file(path_ + "/cgroup.procs");
        file << 0 << std::flush;
        if (!file) throw std::runtime_error("enter control group");
    }

  private:
    std::string path_;
};

}  // namespace

TEST_CASE("the check of the redirection fails without rules, without a resolver, and else not") {
    SidecarTopology net;
    CHECK_FALSE(redirection_works(net.box));
    auto table = net.open(names_only());
    CHECK_FALSE(redirection_works(net.box));
    const Resolver v4(net.box, "127.0.0.1");
    CHECK_FALSE(redirection_works(net.box));
    const Resolver v6(net.box, "::1");
    CHECK(redirection_works(net.box));
}

TEST_CASE("a sidecar that is killed leaves everything closed, and the next takes over") {
    SidecarTopology net;
    net.add_outside("198.51.100.7");
    Child sidecar(net.box, [&] {
        static auto table = rules::SidecarTable::open(net.options(), names_only());
        return table && table->learn("x.test", {ip("192.0.2.2")}, {Scope()}, 300s).has_value();
    });
    REQUIRE(sidecar.succeeded());
    const Listener denied(net.outside, "198.51.100.7", 8000);
    const OpenConnection open(net.box, net.outside, "192.0.2.2", 8000);
    sidecar.kill();
    CHECK(connect_to(net.box, "198.51.100.7", 8000) == ECONNREFUSED);
    CHECK(connect_to(net.box, "9.9.9.9", 53) == ECONNREFUSED);

    auto table = net.open(names_only());
    CHECK(table.learned().names({}, ip("192.0.2.2")) == std::vector<std::string>{"x.test"});
    CHECK(open.carries("still"));
    const Listener learned(net.outside, "192.0.2.2", 8001);
    CHECK(connect_to(net.box, "192.0.2.2", 8001) == 0);
    CHECK(connect_to(net.box, "198.51.100.7", 8000) == ECONNREFUSED);
    const Receiver raw(net.outside, "192.0.2.2", 9000);
    send_datagram(net.box, "172.30.0.2", "192.0.2.2", 9000, "with a new secret");
    CHECK(raw.next() == "with a new secret");

    auto policy = names_only();
    policy.denied = {rules::ScopedPrefix(rules::Prefix(ip("192.0.2.0"), 24))};
    const auto cut = table.set_policy(policy, keep_all);
    must(cut);
    CHECK(cut->run().value() >= 1);
    CHECK(open.send_error("after") == ECONNRESET);
}

TEST_CASE("with a control group of its own, the sidecar's mark is of no use to others") {
    SidecarTopology net;
    const TestGroup group;
    auto options = net.options();
    options.own.group = rules::ControlGroup(group.id(), 1);
    auto table = net.open(names_only(), options);
    const Listener listener(net.outside, "192.0.2.2", 8000);
    CHECK(connect_marked(net.box, "192.0.2.2", 8000, 1) == ECONNREFUSED);
    const auto from_group = [&](std::uint32_t mark) {
        return Child(net.box,
                     [&] {
                         group.enter();
                         return connect_marked(net.box, "192.0.2.2", 8000, mark) == 0;
                     })
            .succeeded();
    };
    CHECK(from_group(1));
    // Without the mark it counts as the sandbox.
    CHECK_FALSE(from_group(2));
    const auto own = Child(net.box, [&] {
        group.enter();
        const auto found = rules::own_control_group();
        return found && found->id == group.id() && found->level == 1;
    });
    CHECK(own.succeeded());
}

TEST_CASE("a second sidecar beside a living one is refused") {
    SidecarTopology net;
    auto table = net.open(names_only());
    const auto code = net.box.run([&] {
        const auto second = rules::SidecarTable::open(net.options(), names_only());
        return second ? ErrorCode::internal : second.error().code();
    });
    CHECK(code == ErrorCode::permission_denied);
    const auto removed = net.box.run([] { return rules::remove_sidecar_table("opensandbox"); });
    CHECK_FALSE(removed.has_value());
}

TEST_CASE("without the right to change the packet filter a sidecar does not begin") {
    SidecarTopology net;
    const Child powerless(net.box, [&] {
        __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
        __user_cap_data_struct none[2]{};
        if (::syscall(SYS_capset, &header, none) != 0) return false;
        const auto table = rules::SidecarTable::open(net.options(), names_only());
        return !table && table.error().code() == ErrorCode::permission_denied;
    });
    CHECK(powerless.succeeded());
    const Listener listener(net.outside, "192.0.2.2", 8000);
    CHECK(connect_to(net.box, "192.0.2.2", 8000) == 0);
}

TEST_CASE("a sidecar reads what was refused in its own namespace") {
    SidecarTopology net;
    auto table = net.open(names_only());
    test_support::Loop loop;
    const auto log = net.box.run([&] { return net::PacketLog::open(loop.executor(), 7).value(); });
    connect_to(net.box, "192.0.2.2", 8000);
    loop.run([&]() -> Awaitable<void> {
        const auto packet = co_await log->next();
        CHECK(packet.value().prefix == "egress-policy");
        CHECK(packet.value().link.empty());
        CHECK(packet.value().outgoing_link == "eth0");
        CHECK(packet.value().destination == ip("192.0.2.2"));
        CHECK(packet.value().destination_port == 8000);
    });
}

TEST_CASE("the links of a namespace are all but its loopback") {
    SidecarTopology net;
    CHECK(net.box.run([] { return rules::outer_links().value(); }) ==
          std::vector<std::string>{"eth0"});
}
