#include "base/unique_fd.hpp"
#include "server/role/startup.hpp"

#include <catch2/catch.hpp>

#include <pty.h>
#include <string>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::server;

namespace {

/// What a person at a terminal would cause by typing `typed`.
bool answer_prompt(const std::string& typed) {
    int controller = -1;
    int terminal = -1;
    REQUIRE(::openpty(&controller, &terminal, nullptr, nullptr, nullptr) == 0);
    UniqueFd ours(controller);
    UniqueFd theirs(terminal);
    REQUIRE(::write(ours.get(), typed.data(), typed.size()) == static_cast<ssize_t>(typed.size()));
    auto patience = typed.ends_with('\n') ? std::chrono::seconds(20) : std::chrono::seconds(0);
    return confirm_insecure_start(theirs.get(), theirs.get(), patience);
}

}  // namespace

TEST_CASE("the startup prompt takes YES from a terminal and nothing else") {
    CHECK(answer_prompt("YES\n"));
    CHECK_FALSE(answer_prompt("yes\n"));
    CHECK_FALSE(answer_prompt("YES!\n"));
    CHECK_FALSE(answer_prompt("\n"));
    CHECK_FALSE(answer_prompt(""));
    int pipes[2];
    REQUIRE(::pipe(pipes) == 0);
    UniqueFd in(pipes[0]);
    UniqueFd out(pipes[1]);
    REQUIRE(::write(out.get(), "YES\n", 4) == 4);
    CHECK_FALSE(confirm_insecure_start(in.get(), out.get(), std::chrono::seconds(5)));
}
