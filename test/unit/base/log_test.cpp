#include "base/log.hpp"

#include "base/log_form.hpp"
#include "base/scope_exit.hpp"
#include "base/unique_fd.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fcntl.h>
#include <regex>
#include <string>
#include <unistd.h>

using namespace opensandbox;

namespace {

/// What one log call writes under a format.
std::string logged(log::Format format, void (*call)()) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    UniqueFd reader(ends[0]), writer(ends[1]);
    log::configure(log::Level::info, format, writer.get());
    ScopeExit restore([] { log::configure(log::Level::info, log::Format::text, STDERR_FILENO); });
    call();
    char buffer[4096];
    ssize_t got = ::read(reader.get(), buffer, sizeof buffer);
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
}

}  // namespace

TEST_CASE("text lines carry level, sentence and named values") {
    std::string line = logged(log::Format::text, [] {
        log::warn("slot lost", {{"sandbox", "s1"}, {"code", 9}, {"why", "a \"b\"\n"}});
    });
    CHECK(line.find(" warn slot lost sandbox=s1 code=9 why=\"a \\\"b\\\"\\n\"\n") !=
          std::string::npos);
}

TEST_CASE("JSON lines escape what others sent") {
    std::string line = logged(log::Format::json, [] {
        log::info("x", {{"path", "/a\x01\"\\"}, {"ok", true}, {"n", 3}});
    });
    CHECK(line.find(R"("level":"info","message":"x","path":"/a\u0001\"\\","ok":true,"n":3})") !=
          std::string::npos);
    CHECK(line.back() == '\n');
}

TEST_CASE("a sentence with line breaks stays one line") {
    std::string line = logged(log::Format::text, [] { log::info("a\nb"); });
    CHECK(std::count(line.begin(), line.end(), '\n') == 1);
}

TEST_CASE("control bytes are never raw in a log") {
    auto call = [] {
        log::info("sentence \x1b[2J of\x7f others\xc2\x9b\xe2\x80\xae",
                  {{"path", "/a\x1b[31m\x7f\xc2\x85\xe2\x80\xa8\xff\xc3\xa4"},
                   {"end", std::string("\r\n\0", 3)},
                   {"plain", "\\u001b"}});
    };
    for (log::Format format : {log::Format::text, log::Format::json}) {
        std::string line = logged(format, call);
        INFO(line);
        REQUIRE(line.ends_with('\n'));
        line.pop_back();
        CHECK(std::ranges::none_of(line, [](char c) {
            auto byte = static_cast<unsigned char>(c);
            return byte < 0x20 || byte == 0x7f;
        }));
        for (const char* raw : {"\xc2\x9b", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xae", "\xff"})
            CHECK(line.find(raw) == std::string::npos);
        for (const char* shown : {R"(sentence \u001b[2J of\u007f others\u009b\u202e)",
                                  "\"/a\\u001b[31m\\u007f\\u0085\\u2028\xef\xbf\xbd\xc3\xa4\"",
                                  R"("\r\n\u0000")", R"("\\u001b")"})
            CHECK(line.find(shown) != std::string::npos);
    }
}

TEST_CASE("a value that is JSON already carries no control byte either") {
    std::string line = logged(log::Format::json, [] {
        log::Value value("rules", "[\"a\x7f\xc2\x9b\"]");
        value.number = true;
        log::info("x", {value});
    });
    CHECK(line.find(R"("rules":["a\u007f\u009b"]})") != std::string::npos);
}

TEST_CASE("lines below the level are not written") {
    CHECK(logged(log::Format::text, [] { log::debug("no"); }).empty());
}

TEST_CASE("a named logger's lines have the contract's keys and what is told of the process") {
    static const log::NamedLogger logger = [] {
        log::NamedLogger made("opensandbox.egress");
        made.attributes = {{"sandbox_id", "box"}, {"team", "r\"d"}};
        return made;
    }();
    log::use_logger(&logger);
    ScopeExit restore([] { log::use_logger(nullptr); });
    const std::string line =
        logged(log::Format::json, [] { log::warn("x y", {{"sandbox_id", "other"}, {"n", 3}}); });
    const std::regex form(
        R"(\{"level":"warn","ts":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",)"
        R"("logger":"opensandbox.egress","msg":"x y","sandbox_id":"other","n":3,"team":"r\\"d"\}\n)");
    INFO(line);
    CHECK(std::regex_match(line, form));
    log::use_logger(nullptr);
    CHECK(logged(log::Format::json, [] { log::info("x"); }).starts_with("{\"time\":"));
}
