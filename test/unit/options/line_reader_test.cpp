#include "options/line_reader.hpp"

#include "options/setters.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::options;

namespace {

using Words = std::vector<std::string>;

constexpr Grammar kGrammar{.words = 1,
                           .unknown = "no '{name}' as in '{word}'{near}",
                           .unexpected = "'{word}' is too much",
                           .no_value = "'{name}' is a flag: {word}",
                           .missing = "{name} needs {what}",
                           .refused = "{name}: '{value}', not {rule}",
                           .refused_variable = "variable {name}: '{value}', not {rule}"};
constexpr Grammar kGo{
    .go = true, .words = SIZE_MAX, .unknown = "no '{name}'", .missing = "{name} needs one"};

struct Read {
    std::string image = "none";
    int count = 0;
    bool quiet = false;
    bool verbose = false;
    std::optional<Words> words;
    std::string problem;
};

std::vector<Option> table(Read& into) {
    return {
        {.name = "--image",
         .letter = 'i',
         .value = "IMAGE",
         .alias = "--picture",
         .variable = "IMAGE",
         .set = text(into.image)},
        {.name = "--count", .value = "N", .variable = "COUNT", .set = number(into.count, -1, 9)},
        {.name = "--quiet", .letter = 'q', .set = constant(into.quiet, true)},
        {.name = "--verbose", .letter = 'v', .set = constant(into.verbose, true)},
    };
}

Read read(const Words& words, const Variable& variable = {}) {
    Read into;
    auto parsed = parse(table(into), kGrammar, words, variable);
    if (parsed) into.words = *parsed;
    if (!parsed) into.problem = parsed.error().message();
    return into;
}

}  // namespace

TEST_CASE("an option is understood in every spelling") {
    for (const Words& words : {Words{"--image", "x=y"}, Words{"--image=x=y"}, Words{"-i", "x=y"},
                               Words{"-ix=y"}, Words{"-i=x=y"}, Words{"-qi", "x=y"},
                               Words{"--picture", "x=y"}, Words{"-i", "a", "--image", "x=y"}}) {
        CAPTURE(words);
        const Read got = read(words);
        CHECK(got.problem.empty());
        CHECK(got.image == "x=y");
    }
    const Read flags = read({"-qv", "--count", "-1"});
    CHECK((flags.quiet && flags.verbose && flags.count == -1));
}

TEST_CASE("words that are no options are returned") {
    CHECK(read({"a", "-q"}).words == Words{"a"});
    CHECK(read({"-"}).words == Words{"-"});
    CHECK(read({"--", "-q"}).words == Words{"-q"});
    CHECK(read({"a", "b"}).problem == "'b' is too much");
}

TEST_CASE("a mistake is told in the words of the role") {
    CHECK(read({"--imgae=x"}).problem == "no '--imgae' as in '--imgae=x'; did you mean '--image'?");
    CHECK(read({"-qx"}).problem.starts_with("no '-x' as in '-qx'"));
    CHECK(read({"--quiet=1"}).problem == "'--quiet' is a flag: --quiet=1");
    CHECK(read({"-i"}).problem == "--image needs IMAGE");
    for (const std::string value : {"10", "-2", "x", "", "1x", "{rule}", "99999999999999999999"}) {
        CHECK(read({"--count=" + value}).problem ==
              "--count: '" + value + "', not a number from -1 to 9");
    }
}

TEST_CASE("the environment is asked first, and what is empty there is nothing") {
    const auto variable = [](std::string_view name) -> std::optional<std::string> {
        return name == "IMAGE" ? "from-there" : "";
    };
    CHECK(read({}, variable).image == "from-there");
    CHECK(read({"-i", "x"}, variable).image == "x");
    CHECK(read({}, [](std::string_view) { return "word"; }).problem ==
          "variable COUNT: 'word', not a number from -1 to 9");
}

TEST_CASE("flags as Go has them end at the first word, and may be given a value") {
    std::string name;
    std::string flag;
    const std::vector<Option> table{{.name = "-name", .value = "x", .set = text(name)},
                                    {.name = "-flag", .letter = 'f', .set = text(flag)}};
    auto words = parse(table, kGo, Words{"--name=a", "-flag", "run", "-name", "--"});
    REQUIRE(words.has_value());
    CHECK(*words == Words{"run", "-name", "--"});
    CHECK((name == "a" && flag == "true"));
    CHECK(*parse(table, kGo, Words{"-name", "-b", "--flag=no", "--", "-v"}) == Words{"-v"});
    CHECK((name == "-b" && flag == "no"));
    CHECK(parse(table, kGo, Words{"-f"}).has_value());
    CHECK(flag == "true");
    CHECK(parse(table, kGo, Words{"--nope"}).error().message() == "no '-nope'");
    CHECK(parse(table, kGo, Words{"-name"}).error().message() == "-name needs one");
}

TEST_CASE("whoever reads the line piece by piece may take the rest as it stands") {
    Read into;
    const auto options = table(into);
    const Words words{"-q", "run", "-i", "--"};
    LineReader reader(kGrammar, words);
    CHECK(reader.next({options})->option == &options[2]);
    CHECK(reader.next({options})->text == "run");
    CHECK(reader.rest() == Words{"-i", "--"});
    CHECK(reader.next({options})->kind == Item::Kind::end);
}

TEST_CASE("only a slip of the finger gets a suggestion") {
    CHECK(suggestion("--imagee", {"--image", "--env"}) == "; did you mean '--image'?");
    CHECK(suggestion("lsit", {"list", "get"}) == "; did you mean 'list'?");
    CHECK(suggestion("xyzzy", {"list", "get"}).empty());
    CHECK(suggestion("x", {"ls", "rm"}).empty());
}
