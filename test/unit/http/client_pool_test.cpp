#include "http/client_pool.hpp"

#include "base/scope_exit.hpp"
#include "support/http_fixture.hpp"

#include <sys/resource.h>
#include <sys/socket.h>

using namespace opensandbox;
using namespace opensandbox::http;
using namespace opensandbox::http::test;

TEST_CASE("kept connections of all origins end at a share of the descriptors", "[http][client]") {
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit few = before;
    few.rlim_cur = 256;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    ScopeExit restore([before] { ::setrlimit(RLIMIT_NOFILE, &before); });
    Loop loop;
    auto pool = std::make_shared<ClientPool>(loop.executor(), ClientOptions());
    std::vector<UniqueFd> peers;
    auto origin = [](int i) { return "127.0.0.1:" + std::to_string(10'000 + i); };
    for (int i = 0; i < 50; ++i) {
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
        peers.emplace_back(ends[0]);
        auto stream = net::adopt_stream(loop.executor(), UniqueFd(ends[1]));
        REQUIRE(stream.has_value());
        pool->put(origin(i), std::move(*stream));
    }
    CHECK(pool->take(origin(49)));
    int kept = 1;
    for (int i = 0; i < 49; ++i) {
        if (pool->take(origin(i))) ++kept;
    }
    CHECK(kept == 32);
    pool->close();
}
