#include "cli/completion.hpp"

#include "cli/help.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace opensandbox::cli;

namespace {

bool offers(const Completion& completion, std::string_view word) {
    return std::ranges::find(completion.words, word) != completion.words.end();
}

Completion at(std::vector<std::string> words) {
    static const CommandTable table = make_command_table();
    return complete(table, words);
}

}  // namespace

TEST_CASE("Completion offers what may stand there") {
    SECTION("groups and commands, but no hidden ones") {
        auto all = at({""});
        for (auto name : {"run", "sandbox", "serve", "code", "completion"})
            CHECK(offers(all, name));
        CHECK_FALSE(offers(all, "complete"));
        CHECK(at({"sand"}).words == std::vector<std::string>{"sandbox"});
        CHECK(offers(at({"sandbox", "sh"}), "shell"));
        CHECK(offers(at({"--server", "x", "sandbox", "ki"}), "kill"));
    }
    SECTION("options of the command and of all") {
        auto options = at({"sandbox", "list", "--"});
        CHECK(offers(options, "--state"));
        CHECK(offers(options, "--output"));
        CHECK(offers(at({"port-forward", "--"}), "--server"));
        CHECK_FALSE(offers(at({"port-forward", "--"}), "--output"));
    }
    SECTION("values of options") {
        CHECK(at({"sandbox", "list", "--state", "Pau"}).words ==
              std::vector<std::string>{"Pausing", "Paused"});
        CHECK(at({"sandbox", "list", "-o", "j"}).words == std::vector<std::string>{"json"});
        CHECK(at({"code", "run", "x", "-l", "ja"}).words ==
              std::vector<std::string>{"javascript", "java"});
        auto joined = at({"sandbox", "list", "--output=y"});
        CHECK(joined.words == std::vector<std::string>{"yaml"});
        CHECK(joined.before == "--output=");
    }
    SECTION("positionals") {
        CHECK(at({"sandbox", "get", ""}).sandbox_ids);
        CHECK(at({"sandbox", "kill", "a", "b"}).sandbox_ids);
        CHECK_FALSE(at({"sandbox", "get", "a", ""}).sandbox_ids);
        CHECK(at({"completion", ""}).words == std::vector<std::string>{"bash", "zsh", "fish"});
        CHECK(at({"cp", ""}).files);
        CHECK(at({"cp", ""}).sandbox_ids);
        CHECK_FALSE(at({"file", "cat", "a", ""}).files);
    }
    SECTION("behind -- there are no options") {
        CHECK(at({"run", "--", "--"}).words.empty());
    }
}

TEST_CASE("Every shell has a script that names the program") {
    for (auto shell : {"bash", "zsh", "fish"}) {
        auto script = completion_script(shell, "my-sandbox");
        INFO(script);
        CHECK(script.find("my-sandbox") != std::string::npos);
        CHECK(script.find("my_sandbox_complete") != std::string::npos);
        CHECK(script.find("PROGRAM") == std::string::npos);
    }
    CHECK(completion_script("tcsh", "x").empty());
}

TEST_CASE("Every shown command has a manual page") {
    const CommandTable table = make_command_table();
    const auto pages = man_pages(table, "1.2.3");
    const auto shown =
        std::ranges::count_if(table.commands, [](const Command& c) { return !c.hidden; });
    CHECK(pages.size() == static_cast<std::size_t>(shown) + 1);
    for (const auto& page : pages) {
        INFO(page.file_name);
        CHECK(page.text.starts_with(".TH "));
        // A line of text that began with a point or a quote would be a request.
        CHECK(page.text.find("\n'") == std::string::npos);
        CHECK(page.text.find("\n.\n") == std::string::npos);
    }
}
