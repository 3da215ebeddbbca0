#include "sidecar_world.hpp"

#include <boost/asio/io_context.hpp>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <thread>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;
using namespace opensandbox::test;

namespace {

constexpr const char* kDenied = "192.0.2.3";
constexpr const char* kAllowed = "192.0.2.2";

/// A sidecar in a process of its own, which can be killed.
class SidecarProcess {
  public:
    explicit SidecarProcess(const SidecarWorld& world) {
        int ends[2];
        checked(::pipe2(ends, O_CLOEXEC), "pipe");
        UniqueFd tell(ends[1]);
        const UniqueFd told(ends[0]);
        pid_ = world.topology.box.run([&] {
            const pid_t child = ::fork();
            if (child == 0) serve(world.settings(), tell.get());
            return child;
        });
        checked(pid_, "fork");
        tell.reset();
        char ready = 0;
        started = wait_for(told.get(), POLLIN) && ::read(told.get(), &ready, 1) == 1;
    }
    SidecarProcess(const SidecarProcess&) = delete;
    SidecarProcess& operator=(const SidecarProcess&) = delete;
    ~SidecarProcess() { kill(); }

    void kill() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }

    bool started = false;

  private:
    [[noreturn]] static void serve(SidecarSettings settings, int tell) {
        asio::io_context loop(1);
        Sidecar sidecar(loop.get_executor(), std::move(settings));
        auto start = [](Sidecar& started, int fd) -> Awaitable<void> {
            const Status status = co_await started.start();
            if (!status || ::write(fd, "k", 1) != 1) ::_exit(1);
        };
        net::spawn(loop.get_executor(), start(sidecar, tell), "start");
        loop.run();
        ::_exit(2);
    }

    pid_t pid_ = 0;
};

/// Counts what arrives outside, by its destination.
class PacketCount {
  public:
    explicit PacketCount(const TestNamespace& place) {
        for (const int protocol : {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP}) {
            sockets_.push_back(place.run([&] {
                return UniqueFd(checked(
                    ::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol), "raw"));
            }));
        }
    }
    /// Those to an address among all that came until now.
    std::size_t take(const std::string& address) {
        for (const UniqueFd& fd : sockets_) {
            std::uint8_t packet[128];
            while (::recv(fd.get(), packet, sizeof packet, 0) >= 20) {
                in_addr to{};
                std::memcpy(&to, packet + 16, sizeof to);
                char text[INET_ADDRSTRLEN];
                ++seen_[::inet_ntop(AF_INET, &to, text, sizeof text)];
            }
        }
        return seen_[address];
    }

  private:
    std::vector<UniqueFd> sockets_;
    std::map<std::string, std::size_t> seen_;
};

/// Root of the sandbox who tries to get out, without end: datagrams, connections, echo requests.
class Traffic {
  public:
    explicit Traffic(const TestNamespace& box) : thread_([&box, this] { run(box); }) {}
    ~Traffic() {
        ended_ = true;
        thread_.join();
    }
    Traffic(const Traffic&) = delete;
    Traffic& operator=(const Traffic&) = delete;
    /// Waits until so many more rounds were made.
    void pass(std::size_t count) const {
        const std::size_t until = rounds_ + count;
        while (rounds_ < until && !ended_)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }

  private:
    void run(const TestNamespace& box) {
        box.run([&] {
            const UniqueFd raw(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
            const std::uint8_t echo[8] = {8, 0, 0xf7, 0xff, 0, 0, 0, 0};
            while (!ended_) {
                for (const char* address : {kDenied, kAllowed}) {
                    const SocketAddress to(address, kPort);
                    const UniqueFd datagrams = open_socket(to, SOCK_DGRAM);
                    const UniqueFd stream = open_socket(to, SOCK_STREAM);
                    (void)::sendto(datagrams.get(), "x", 1, 0, to.get(), to.size);
                    (void)::connect(stream.get(), to.get(), to.size);
                    (void)::sendto(raw.get(), echo, sizeof echo, 0, to.get(), to.size);
                }
                ++rounds_;
            }
        });
    }

    std::atomic<bool> ended_ = false;
    std::atomic<std::size_t> rounds_ = 0;
    std::thread thread_;
};

}  // namespace

TEST_CASE("not one packet to what is denied gets out when a sidecar is killed", "[egress]") {
    SidecarWorld world;
    world.adjust = [](SidecarSettings& settings) {
        settings.options.policy_file.clear();
        settings.options.rules = R"({"egress":[{"action":"allow","target":"192.0.2.2"}]})";
    };
    world.topology.add_outside(kDenied);
    auto first = std::make_unique<SidecarProcess>(world);
    REQUIRE(first->started);
    PacketCount count(world.topology.outside);
    {
        const Traffic traffic(world.topology.box);
        traffic.pass(50);
        first->kill();
        traffic.pass(200);
        // What was allowed by its address still is, and is what shows that packets are counted.
        const std::size_t allowed = count.take(kAllowed);
        CHECK(allowed > 0);
        CHECK(count.take(kDenied) == 0);
        for (int again = 0; again < 3; ++again) {
            SidecarProcess next(world);
            CHECK(next.started);
            traffic.pass(50);
            next.kill();
            traffic.pass(50);
        }
        CHECK(count.take(kAllowed) > allowed);
    }
    CHECK(count.take(kDenied) == 0);
    // The next one is a whole sidecar: what it is told is in force.
    world.adjust = [before = world.adjust](SidecarSettings& settings) {
        before(settings);
        settings.options.http.port = 18080;
    };
    const SidecarProcess last(world);
    REQUIRE(last.started);
    CHECK(connect_to(world.topology.box, kDenied, kPort) != 0);
    CHECK(connect_to(world.topology.box, "127.0.0.1", 18080) == 0);
}
