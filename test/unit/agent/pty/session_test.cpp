#include "agent/pty/session.hpp"

#include "agent/pty/client.hpp"
#include "support/event_loop.hpp"

using namespace opensandbox;
using namespace opensandbox::agent;

TEST_CASE("who waits for a session does not take it from one who came later", "[agent][pty]") {
    test_support::Loop loop;
    Reaper reaper;
    Environment environment;
    bool stopping = false;
    ProcessContext processes{loop.executor(), reaper, environment, {}, stopping};
    auto session = std::make_shared<PtySession>(processes, "one", PtyShell());
    auto client = [&] {
        return std::make_shared<PtyClient>(loop.executor(), session, PtyClientOptions());
    };
    auto first = client();
    auto second = client();
    auto third = client();
    bool second_done = false;
    REQUIRE(session->take(first));
    loop.run([&]() -> Awaitable<void> {
        auto wait = [&]() -> Awaitable<void> {
            CHECK(co_await session->take_over(second));
            second_done = true;
        };
        net::spawn(loop.executor(), wait(), "the second");
        // It waits until the first one goes.
        co_await net::sleep_for(std::chrono::milliseconds(1));
        CHECK_FALSE(second_done);
        session->leave(*first);
        // The session is free, and the second has not woken up yet.
        CHECK(co_await session->take_over(third));
        while (!second_done)
            co_await net::sleep_for(std::chrono::milliseconds(1));
    });
    CHECK_FALSE(session->idle());
    session->leave(*third);
    CHECK(session->idle());
}
