#include "agent/code/warm_program.hpp"

#include "agent/code/drivers/warm_interpreter.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace std::chrono_literals;

TEST_CASE("warm programs: a list of languages with what they import", "[agent][warm]") {
    auto none = parse_warm_programs("");
    REQUIRE(none.has_value());
    CHECK(none->empty());
    CHECK(parse_warm_programs("[]")->empty());
    auto programs =
        parse_warm_programs(R"([{"language":"python","import":["json","http.client","_x9"]}])");
    REQUIRE(programs.has_value());
    REQUIRE(programs->size() == 1);
    CHECK(programs->front().language == "python");
    CHECK(programs->front().imports == std::vector<std::string>{"json", "http.client", "_x9"});
}

TEST_CASE("warm programs: what breaks a rule is named", "[agent][warm]") {
    const std::pair<std::string, std::string> cases[] = {
        {"{", "warm programs"},
        {"{}", "list"},
        {"[1]", "list of objects"},
        {"[{}]", "language"},
        {R"([{"language":"perl"}])", "language"},
        {R"([{"language":1}])", "language"},
        {R"([{"language":"python","imports":[]}])", "imports"},
        {R"([{"language":"python","import":"json"}])", "import"},
        {R"([{"language":"python","import":["a b"]}])", "import"},
        {R"([{"language":"python","import":["a;b"]}])", "import"},
        {R"([{"language":"python","import":[""]}])", "import"},
        {R"([{"language":"python","import":["a."]}])", "import"},
        {R"([{"language":"python","import":["a..b"]}])", "import"},
        {R"([{"language":"python","import":["9a"]}])", "import"},
        {R"([{"language":"python"},{"language":"python"}])", "twice"},
        {"[" + std::string(5000, ' ') + "]", "4096"},
    };
    for (const auto& [text, word] : cases) {
        INFO(text);
        auto programs = parse_warm_programs(text);
        REQUIRE_FALSE(programs.has_value());
        CHECK(programs.error().code() == ErrorCode::invalid_argument);
        CHECK(programs.error().message().find(word) != std::string::npos);
    }
}

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

WarmProgram python(std::vector<std::string> imports) {
    WarmProgram program;
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
