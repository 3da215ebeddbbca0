#include "base/log.hpp"

#include "base/log_form.hpp"
#include "base/scope_exit.hpp"
#include "base/unique_fd.hpp"

#include <catch2/catch.hpp>

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
