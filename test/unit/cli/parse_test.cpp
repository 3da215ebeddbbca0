#include "cli/command_line.hpp"
#include "cli/help.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace opensandbox;
using namespace opensandbox::cli;

namespace {

using Words = std::vector<std::string>;

/// The table must outlive what is parsed with it.
const CommandTable& table() {
    static const CommandTable all = make_command_table();
    return all;
}

ParsedLine parse(const Words& words) {
    return parse_line(table(), words);
}

ParsedLine parse_well(const Words& words) {
    ParsedLine line = parse(words);
    INFO((line.problem ? line.problem->describe() : std::string()));
    REQUIRE_FALSE(line.problem);
    REQUIRE(line.command);
    return line;
}

std::string problem_of(const Words& words) {
    ParsedLine line = parse(words);
    REQUIRE(line.problem);
    CHECK(line.problem->exit_code() == 2);
    return line.problem->describe();
}

}  // namespace

TEST_CASE("options may stand before, between and after positionals, in every spelling") {
    for (const Words& words :
         {Words{"sandbox", "renew", "sb", "--timeout", "5m"},
          Words{"sandbox", "renew", "--timeout=5m", "sb"},
          Words{"sandbox", "renew", "-t", "5m", "sb"}, Words{"sandbox", "renew", "sb", "-t5m"},
          Words{"sandbox", "renew", "sb", "-t=5m"},
          Words{"sandbox", "renew", "-t", "5m", "--", "sb"}}) {
        auto line = parse_well(words);
        CHECK(line.command->full_name() == "sandbox renew");
        CHECK(line.arguments.get("--timeout") == "5m");
        CHECK(line.arguments.one("SANDBOX_ID") == "sb");
    }
}

TEST_CASE("global options stand before or after the command") {
    for (const Words& words : {Words{"--server", "h:1", "-o", "json", "sandbox", "list"},
                               Words{"sandbox", "--server=h:1", "list", "-ojson"},
                               Words{"sandbox", "list", "--output", "json", "--server", "h:1"}}) {
        auto line = parse_well(words);
        CHECK(line.arguments.get("--server") == "h:1");
        CHECK(line.format == Format::json);
    }
}

TEST_CASE("the payload is taken as it stands, with or without a double dash") {
    for (const Words& words : {Words{"run", "-e", "A=1", "--", "ls", "-l", "--", "--help", ""},
                               Words{"run", "-e", "A=1", "ls", "-l", "--", "--help", ""}}) {
        auto line = parse_well(words);
        CHECK(line.arguments.rest("COMMAND") == Words{"ls", "-l", "--", "--help", ""});
        CHECK(line.arguments.all("--env") == Words{"A=1"});
        CHECK_FALSE(line.wants_help);
    }
    auto line = parse_well({"command", "run", "sb", "-w", "/tmp", "--", "-x"});
    CHECK(line.arguments.one("SANDBOX_ID") == "sb");
    CHECK(line.arguments.rest("COMMAND") == Words{"-x"});
}

TEST_CASE("repeated options keep all values, others the last") {
    auto line = parse_well({"run", "-e", "A=1", "-e", "B=2", "-i", "x", "-i", "y", "true"});
    CHECK(line.arguments.all("--env") == Words{"A=1", "B=2"});
    CHECK(line.arguments.get("--image") == "y");
}

TEST_CASE("positionals that take many take all") {
    auto line = parse_well({"sandbox", "kill", "a", "b", "c"});
    CHECK(line.arguments.rest("SANDBOX_ID") == Words{"a", "b", "c"});
}

TEST_CASE("the default format is the command's first") {
    CHECK(parse_well({"sandbox", "list"}).format == Format::table);
    CHECK(parse_well({"file", "cat", "sb", "/x"}).format == Format::raw);
}

TEST_CASE("each mistake is named, with what would be right") {
    struct Case {
        Words words;
        std::vector<std::string> named;
    };
    for (const Case& c :
         {Case{{"sandbx"}, {"'sandbx'", "'sandbox'"}},
          Case{{"xyzzy"}, {"'xyzzy'", "run", "sandbox", "file", "image"}},
          Case{{"sandbox", "creat"}, {"'creat'", "'create'"}},
          Case{{"sandbox", "create", "--imgae", "x"}, {"sandbox create", "'--imgae'", "'--image'"}},
          Case{{"sandbox", "list", "-q"}, {"'-q'"}}, Case{{"sandbox", "get"}, {"SANDBOX_ID"}},
          Case{{"sandbox", "get", "a", "b"}, {"'b'"}},
          Case{{"sandbox", "renew", "a"}, {"--timeout", "DURATION"}},
          Case{{"sandbox", "renew", "a", "-t"}, {"--timeout", "DURATION"}},
          Case{{"sandbox", "metrics", "a", "--watch=yes"}, {"--watch", "no value"}},
          Case{{"sandbox", "list", "-o", "xml"}, {"--output", "'xml'", "table, json, yaml"}},
          Case{{"file", "cat", "sb", "/x", "-o", "json"}, {"--output", "'json'", "raw"}},
          Case{{"run", "-o", "json", "true"}, {"--output"}}, Case{{"run"}, {"COMMAND"}},
          Case{{"--", "sandbox"}, {"--"}}}) {
        const std::string problem = problem_of(c.words);
        for (const auto& part : c.named) {
            CAPTURE(problem, part);
            CHECK(problem.find(part) != std::string::npos);
        }
    }
}

TEST_CASE("help is found at every level, also when more is missing") {
    for (const Words& words : {Words{"--help"}, Words{"-h"}, Words{"help"}}) {
        auto line = parse(words);
        CHECK(line.wants_help);
        CHECK_FALSE(line.command);
        CHECK_FALSE(line.problem);
    }
    auto group = parse({"sandbox", "-h"});
    CHECK(group.wants_help);
    CHECK(group.help_group == "sandbox");
    for (const Words& words :
         {Words{"sandbox", "renew", "--help"}, Words{"help", "sandbox", "renew"}}) {
        auto line = parse(words);
        CHECK(line.wants_help);
        REQUIRE(line.command);
        CHECK(line.command->name == "renew");
        CHECK_FALSE(line.problem);
    }
}

TEST_CASE("a group or nothing at all asks for help and is wrong usage") {
    for (const Words& words : {Words{}, Words{"sandbox"}, Words{"-v"}}) {
        auto line = parse(words);
        CHECK(line.wants_help);
        REQUIRE(line.problem);
        CHECK(line.problem->exit_code() == 2);
    }
}

TEST_CASE("the version is an option and a command") {
    CHECK(parse({"--version"}).wants_version);
    CHECK(parse({"version"}).wants_version);
}

TEST_CASE("a group may stand in another") {
    auto line = parse_well({"command", "session", "create", "sb", "-w", "/tmp"});
    CHECK(line.command->full_name() == "command session create");
    CHECK(line.arguments.one("SANDBOX_ID") == "sb");
    CHECK(parse_well({"credential-vault", "binding", "get", "sb", "b"}).command->group ==
          "credential-vault binding");
    CHECK(parse_well({"command", "status", "sb", "e"}).command->full_name() == "command status");
    CHECK(problem_of({"command", "session"}).find("command session: a command is needed") == 0);
    CHECK(problem_of({"command", "sesion"}).find("did you mean 'session'?") != std::string::npos);
    CHECK(problem_of({"command", "session", "x"}).find("create, run, delete") != std::string::npos);
    const std::string help =
        group_help_text(table(), *table().find_group("command"), "opensandbox");
    CHECK(help.find("\n  session ") != std::string::npos);
    CHECK(help_text(table(), "opensandbox").find("command session") == std::string::npos);
}

TEST_CASE("other names of commands and options are understood") {
    auto line = parse_well({"snapshot", "list", "--sandbox", "sb"});
    CHECK(line.arguments.get("--sandbox-id") == "sb");
    CHECK(parse_well({"snapshot", "remove", "sn"}).command->name == "delete");
}

TEST_CASE("the help as a document has every command and option") {
    const json::object document = describe(table());
    const auto shown = std::ranges::count(table().commands, false, &Command::hidden);
    CHECK(document.at("commands").as_array().size() == static_cast<std::size_t>(shown));
    CHECK(document.at("options").as_array().size() == global_options().size());
    const auto& first = document.at("commands").as_array().at(0).as_object();
    CHECK(first.at("name").as_string() == table().commands.front().full_name());
    CHECK(first.at("options").as_array().size() == table().commands.front().options.size());
}

TEST_CASE("every command has a handler, a summary, examples, and unambiguous options") {
    for (const Command& command : table().commands) {
        CAPTURE(command.full_name());
        CHECK_FALSE(command.examples.empty());
        CHECK(command.run);
        CHECK_FALSE(command.summary.empty());
        if (!command.group.empty()) CHECK(table().find_group(command.group));
        std::vector<Option> options = command.options;
        options.insert(options.end(), global_options().begin(), global_options().end());
        for (std::size_t i = 0; i < options.size(); ++i) {
            for (std::size_t j = i + 1; j < options.size(); ++j) {
                CHECK(options[i].name != options[j].name);
                if (options[i].letter) CHECK(options[i].letter != options[j].letter);
            }
        }
    }
}

TEST_CASE("every example in the help is a line that this program accepts") {
    for (const Command& command : table().commands) {
        for (const Example& example : command.examples) {
            // Redirections belong to the shell; quotes hold no spaces that matter here.
            std::string text(example.line.substr(0, example.line.find(" < ")));
            Words words;
            for (std::size_t at = 0; at < text.size();) {
                auto end = std::min(text.find(' ', at), text.size());
                words.push_back(text.substr(at, end - at));
                at = end + 1;
            }
            CAPTURE(text);
            CHECK(parse_well(words).command == &command);
        }
    }
}

TEST_CASE("help shows usage, options and examples") {
    const Command* renew = table().find("sandbox", "renew");
    REQUIRE(renew);
    const std::string text = command_help_text(*renew, "osb");
    CHECK(text.find("Usage: osb sandbox renew [OPTIONS] SANDBOX_ID") == 0);
    CHECK(text.find("-t, --timeout DURATION") != std::string::npos);
    CHECK(text.find("Required.") != std::string::npos);
    CHECK(text.find("-o, --output FORMAT") != std::string::npos);
    CHECK(text.find("osb sandbox renew SANDBOX_ID -t 1h") != std::string::npos);
    const std::string all = help_text(table(), "opensandbox");
    for (const auto& group : table().groups) {
        if (!group.is_nested()) CHECK(all.find(group.name) != std::string::npos);
    }
    const std::string group = group_help_text(table(), *table().find_group("file"), "opensandbox");
    CHECK(group.find("Usage: opensandbox file COMMAND") == 0);
    CHECK(group.find("download") != std::string::npos);
}
