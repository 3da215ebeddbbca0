#include "unit/egress/role/host_world.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

using namespace opensandbox;
using namespace opensandbox::test;
using namespace std::chrono_literals;
using egress::Enforcer;

namespace {

constexpr unsigned kNobody = 65534;

/// Of the calling thread, and of those that it starts, alone.
void keep_network_administration() {
    checked(::prctl(PR_SET_KEEPCAPS, 1), "PR_SET_KEEPCAPS");
    for (const long call : {SYS_setresgid, SYS_setresuid})
        checked(static_cast<int>(::syscall(call, kNobody, kNobody, kNobody)), "setresuid");
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    data[0].effective = data[0].permitted = 1U << CAP_NET_ADMIN;
    checked(static_cast<int>(::syscall(SYS_capset, &header, data)), "capset");
}

}  // namespace

TEST_CASE("an enforcer needs no privilege but to administer the network", "[egress]") {
    HostWorld world;
    const auto& a = world.net.a;
    std::filesystem::create_directories(world.settings().state_directory);
    checked(::chown(world.settings().state_directory.c_str(), kNobody, kNobody), "chown");
    world.drop_privileges = keep_network_administration;

    std::promise<void> guarded;
    std::promise<void> seen;
    auto enforcing = std::async(std::launch::async, [&] {
        world.with_enforcer([&](Enforcer& enforcer) -> Awaitable<void> {
            CHECK(::geteuid() == kNobody);
            CHECK(co_await enforcer.guard(world.spec(a)));
            const std::string patch = R"([{"action":"allow","target":"good.test"}])";
            CHECK_THAT(co_await world.ask(a, "PATCH", "/policy", patch), Contains("200 OK"));
            guarded.set_value();
            auto done = seen.get_future();
            while (done.wait_for(0s) != std::future_status::ready)
                co_await net::sleep_for(5ms);
            CHECK_THAT(co_await world.ask(a, "DELETE", "/policy", R"(["good.test"])"),
                       Contains("200 OK"));
            std::string told;
            for (int i = 0; i < 500 && told.find("198.51.100.7") == std::string::npos; ++i) {
                co_await net::sleep_for(10ms);
                told = co_await world.ask(a, "GET", "/policy/denials");
            }
            CHECK_THAT(told, Contains("198.51.100.7"));
            CHECK_FALSE(enforcer.authority_pem().empty());
            co_await enforcer.release("box-egra");
        });
    });
    if (guarded.get_future().wait_for(15s) == std::future_status::ready) {
        int answered = -1;
        test_support::Loop loop;
        loop.run([&]() -> Awaitable<void> { answered = co_await world.query(a, "good.test"); });
        const int allowed = world.reach(a, "192.0.2.2");
        const int denied = world.reach(a, "198.51.100.7");
        seen.set_value();
        enforcing.get();
        CHECK(answered == 0);
        CHECK(allowed == 0);
        CHECK(denied != 0);
        CHECK(world.reach(a, "198.51.100.7") == 0);
    }
}
