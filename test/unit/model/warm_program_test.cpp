#include "model/warm_program.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::model;

TEST_CASE("warm programs: a list of languages with what they import", "[model][warm]") {
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

TEST_CASE("warm programs: what breaks a rule is named", "[model][warm]") {
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
