#include "cli/code_input.hpp"
#include "cli/copy_place.hpp"
#include "cli/log_lines.hpp"
#include "cli/port_mapping.hpp"
#include "cli/remote_shell.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::cli;

TEST_CASE("Escapes are found at the beginning of a line only") {
    EscapeFilter filter;
    SECTION("a tilde and a dot detach, and what follows is dropped") {
        auto keys = filter.feed("~.rest");
        CHECK(keys.detach);
        CHECK(keys.send.empty());
    }
    SECTION("in pieces, behind a line end") {
        CHECK(filter.feed("ls\r").send == "ls\r");
        auto half = filter.feed("~");
        CHECK(half.send.empty());
        CHECK_FALSE(half.detach);
        CHECK(filter.feed(".").detach);
    }
    SECTION("two tildes are one") {
        CHECK(filter.feed("~~/x").send == "~/x");
    }
    SECTION("a tilde before another key goes through with it") {
        CHECK(filter.feed("~/x").send == "~/x");
    }
    SECTION("in a line a tilde is a key") {
        auto keys = filter.feed("cd ~.");
        CHECK_FALSE(keys.detach);
        CHECK(keys.send == "cd ~.");
    }
    SECTION("a tilde before a line end is kept, and the next line can detach") {
        CHECK(filter.feed("~\r").send == "~\r");
        CHECK(filter.feed("~.").detach);
    }
    SECTION("switched off it changes nothing") {
        EscapeFilter off(false);
        auto keys = off.feed("~.~~");
        CHECK_FALSE(keys.detach);
        CHECK(keys.send == "~.~~");
    }
}

TEST_CASE("Log lines are shown once") {
    LogFollower follower;
    auto first = follower.fresh("2026-01-01T00:00:01Z a\n2026-01-01T00:00:02Z b\n");
    REQUIRE(first.size() == 2);
    CHECK(without_time(first[1]) == "b");
    CHECK(follower.fresh("2026-01-01T00:00:02Z b\n").empty());
    auto later = follower.fresh(
        "2026-01-01T00:00:01Z a\n2026-01-01T00:00:02Z b\n2026-01-01T00:00:02Z b\n"
        "2026-01-01T00:00:03Z c\n");
    REQUIRE(later.size() == 2);  // the same text at the same time was written once more
    CHECK(later[1] == "2026-01-01T00:00:03Z c");
    CHECK(follower.fresh("(no logs)\n").empty());
}

TEST_CASE("Port mappings") {
    CHECK(parse_port_mapping("8000")->local == 8000);
    CHECK(parse_port_mapping("9000:80")->local == 9000);
    CHECK(parse_port_mapping("9000:80")->remote == 80);
    CHECK(parse_port_mapping(":80")->local == 0);
    for (auto text : {"", ":", "0", "80:", "65536", "-1", "80:80:80", "x", " 80", "0:80"}) {
        INFO(text);
        CHECK_FALSE(parse_port_mapping(text));
    }
}

TEST_CASE("Ends of a copy") {
    CHECK(parse_copy_place("abc:/x")->sandbox == "abc");
    CHECK(parse_copy_place("abc:/x")->path == "/x");
    CHECK_FALSE(parse_copy_place("./a:b")->remote());
    CHECK_FALSE(parse_copy_place("plain")->remote());
    CHECK_FALSE(parse_copy_place("abc:"));
    CHECK_FALSE(parse_copy_place(""));
    CHECK(last_part("/a/b/") == "b");
}

TEST_CASE("Paths that a sandbox tells stay below their directory") {
    CHECK(path_below("/a", "/a/b/c") == "b/c");
    CHECK(path_below("/a/", "/a/b") == "b");
    CHECK(path_below("/", "/b") == "b");
    for (auto path : {"/a", "/ab/c", "/a/../etc", "/a/b/..", "/a/./b", "/a//b/..", "/b", "a/b"}) {
        INFO(path);
        CHECK_FALSE(path_below("/a", path));
    }
}

TEST_CASE("Code that goes on in the next line") {
    CHECK_FALSE(needs_more("python", "print(1)\n"));
    CHECK(needs_more("python", "print(\n"));
    CHECK(needs_more("python", "def f():\n"));
    CHECK(needs_more("python", "def f():\n    return 1\n"));
    CHECK_FALSE(needs_more("python", "def f():\n    return 1\n\n"));
    CHECK(needs_more("python", "x = '''a\n"));
    CHECK_FALSE(needs_more("python", "x = '('\n"));
    CHECK_FALSE(needs_more("python", "x = 1  # (\n"));
    CHECK(needs_more("javascript", "const f = () => {\n"));
    CHECK_FALSE(needs_more("javascript", "const f = () => { return '{' }\n"));
    CHECK(needs_more("bash", "echo 'a\n"));
    CHECK(needs_more("bash", "echo a \\\n"));
    CHECK_FALSE(needs_more("bash", "echo (a\n"));
    CHECK(language_of("x/y.py") == "python");
    CHECK(language_of("README").empty());
}
