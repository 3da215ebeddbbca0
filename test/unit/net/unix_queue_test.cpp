#include "net/task.hpp"
#include "support/catch_result.hpp"
#include "support/event_loop.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>
#include <sys/socket.h>
#include <sys/un.h>

#include <vector>

using namespace opensandbox;
using namespace std::chrono_literals;
using test_support::Loop;

namespace {

struct FullQueue {
    FullQueue() {
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof(address.sun_path) - 1);
        REQUIRE(::bind(listener.get(), generic(), sizeof(address)) == 0);
        REQUIRE(::listen(listener.get(), 0) == 0);
        int failure = 0;
        while (failure == 0) {
            UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            if (::connect(fd.get(), generic(), sizeof(address)) != 0) failure = errno;
            waiting.push_back(std::move(fd));
        }
        REQUIRE(failure == EAGAIN);
    }
    const sockaddr* generic() { return reinterpret_cast<const sockaddr*>(&address); }

    test_support::ScratchDirectory directory;
    std::string path = directory.path / "s";
    sockaddr_un address{};
    UniqueFd listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::vector<UniqueFd> waiting;
};

}  // namespace

TEST_CASE("a Unix socket whose queue is full is waited for") {
    FullQueue queue;
    Loop loop;
    std::vector<UniqueFd> accepted;
    loop.run([&]() -> Awaitable<void> {
        net::Deadline room(loop.executor(), 20ms, [&] {
            accepted.emplace_back(::accept(queue.listener.get(), nullptr, nullptr));
        });
        auto stream = co_await net::connect_unix(queue.path);
        REQUIRE(stream);
        CHECK(accepted.size() == 1);
        auto written = co_await net::write_all(**stream, "x");
        CHECK(written);
    });
}
