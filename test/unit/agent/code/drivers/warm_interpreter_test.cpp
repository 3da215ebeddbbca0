#include "agent/code/drivers/warm_interpreter.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace std::chrono_literals;

TEST_CASE("a running interpreter takes on what does not count at its start", "[agent][warm]") {
    const std::vector<std::string> before{"HOME=/root", "PATH=/bin"};
    CHECK(can_take_on(before, before));
    CHECK(can_take_on(before, {"A=1", "HOME=/root", "PATH=/bin"}));
    CHECK_FALSE(can_take_on(before, {"HOME=/root"}));
    CHECK_FALSE(can_take_on(before, {"HOME=/root", "PATH=/bin:/sbin"}));
    CHECK_FALSE(can_take_on(before, {"HOME=/root", "PATH=/bin", "PYTHONPATH=/x"}));
    CHECK_FALSE(can_take_on(before, {"HOME=/root", "LD_PRELOAD=x", "PATH=/bin"}));
    CHECK_FALSE(can_take_on(before, {"HOME=/root", "OMP_NUM_THREADS=1", "PATH=/bin"}));
    CHECK_FALSE(can_take_on({"PATH=/bin", "TZ=UTC"}, {"PATH=/bin"}));
}

namespace {

WarmInterpreter::Place place_here() {
    WarmInterpreter::Place place;
    place.environment.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    return place;
}

model::WarmProgram python(std::vector<std::string> imports) {
    model::WarmProgram program;
    program.language = "python";
    program.imports = std::move(imports);
    return program;
}

}  // namespace

TEST_CASE("a warm interpreter is started with its modules, and lives until it is let go",
          "[agent][warm]") {
    auto warm = WarmInterpreter::start(python({"json", "http.client"}), place_here(), 60s);
    REQUIRE(warm.has_value());
    CHECK(warm->alive());
    CHECK(warm->language() == "python");
    CHECK(warm->environment() == std::vector<std::string>{"PATH=/usr/local/bin:/usr/bin:/bin"});
    WarmInterpreter other = std::move(*warm);
    CHECK(other.alive());
    CHECK_FALSE(warm->alive());
}

TEST_CASE("a module that cannot be loaded is named", "[agent][warm]") {
    auto warm = WarmInterpreter::start(python({"json", "no_such_module"}), place_here(), 60s);
    REQUIRE_FALSE(warm.has_value());
    CHECK(warm.error().message().find("no_such_module") != std::string::npos);
}

TEST_CASE("an interpreter that is not installed, or does not become ready, is said",
          "[agent][warm]") {
    WarmInterpreter::Place nowhere = place_here();
    nowhere.environment.set("PATH", "/no/such/directory");
    auto missing = WarmInterpreter::start(python({}), nowhere, 60s);
    REQUIRE_FALSE(missing.has_value());
    CHECK(missing.error().message().find("python3") != std::string::npos);
    auto late = WarmInterpreter::start(python({"json"}), place_here(), 0ms);
    REQUIRE_FALSE(late.has_value());
    CHECK(late.error().code() == ErrorCode::timeout);
}
