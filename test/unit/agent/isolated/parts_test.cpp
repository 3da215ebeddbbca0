#include "agent/isolated/config.hpp"
#include "agent/isolated/request.hpp"
#include "agent/isolated/run.hpp"
#include "agent/isolated/text_diff.hpp"
#include "agent/isolated/walls.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::agent;

TEST_CASE("isolation configuration: values and defaults", "[isolated]") {
    auto config = IsolationConfig::parse(R"(
upper_root = "/srv/uppers"
upper_max_bytes = 1048576
allowed_writable = ["/srv/data"]
unknown = 1
[seccomp]
deny = ["ptrace"]
[hardening]
enabled = true
keep_capabilities = ["CAP_NET_RAW", "mknod"]
[landlock]
enabled = true
[ebpf]
enabled = true
)",
                                         "test");
    REQUIRE(config);
    CHECK(config->upper_root == "/srv/uppers");
    CHECK(config->upper_max_bytes == 1048576);
    CHECK(config->allowed_writable == std::vector<std::string>{"/srv/data"});
    CHECK(config->denied_calls == std::vector<std::string>{"ptrace"});
    CHECK(config->kept_capabilities == ((1ULL << 13) | (1ULL << 27)));
    CHECK(config->landlock);
    auto defaults = IsolationConfig::parse("", "test");
    REQUIRE(defaults);
    CHECK(defaults->upper_root == "/var/lib/execd/isolation");
    CHECK(defaults->upper_max_bytes == 8ULL << 30);
    CHECK(defaults->allowed_writable.size() == 4);
    CHECK(defaults->hardening);
    CHECK_FALSE(defaults->landlock);
}

TEST_CASE("isolation configuration: what is wrong is named", "[isolated]") {
    auto fails = [](const char* text, const std::string& word) {
        auto config = IsolationConfig::parse(text, "test");
        REQUIRE_FALSE(config);
        INFO(config.error().message());
        CHECK(config.error().code() == ErrorCode::invalid_argument);
        CHECK(config.error().message().find(word) != std::string::npos);
    };
    fails("upper_root = \"relative\"", "upper_root");
    fails("upper_max_bytes = 0", "upper_max_bytes");
    fails("allowed_writable = [1]", "allowed_writable");
    fails("[hardening]\nkeep_capabilities = [\"CAP_SYS_ADMIN\"]", "CAP_SYS_ADMIN");
    fails("[hardening]\nkeep_capabilities = [\"CAP_FLYING\"]", "CAP_FLYING");
    fails("[hardening]\nenabled = 1", "hardening.enabled");
    fails("[landlock", "test:1");
    CHECK(IsolationConfig::load("/does/not/exist").has_error());
    CHECK(compile_deny_filter({"no_such_call"}).has_error());
    CHECK(compile_deny_filter({"ptrace", "mount"}).has_value());
}

TEST_CASE("isolation: clean paths and what lies within", "[isolated]") {
    CHECK(is_clean_path("/"));
    CHECK(is_clean_path("/a/b.c/..d"));
    for (const char* path : {"", "a", "/a/", "//a", "/a//b", "/a/./b", "/a/..", "/.."})
        CHECK_FALSE(is_clean_path(path));
    CHECK_FALSE(is_clean_path(std::string_view("/a\0b", 4)));
    CHECK(is_within("/a/b", "/a"));
    CHECK(is_within("/a", "/a"));
    CHECK(is_within("/a", "/"));
    CHECK_FALSE(is_within("/ab", "/a"));
    CHECK_FALSE(is_within("/", "/a"));
}

TEST_CASE("unified diff: hunks, context and missing newlines", "[isolated]") {
    auto diff = [](std::string_view a, std::string_view b) { return unified_diff(a, b, "a", "b"); };
    CHECK(diff("same\n", "same\n").empty());
    CHECK(diff("", "x\ny\n") == "--- a\n+++ b\n@@ -0,0 +1,2 @@\n+x\n+y\n");
    CHECK(diff("x\n", "") == "--- a\n+++ b\n@@ -1 +0,0 @@\n-x\n");
    CHECK(diff("a\nb", "a\nb\n") ==
          "--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
    CHECK(diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nX\n6\n7\n8\n9\n") ==
          "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8\n");
    std::string before;
    std::string after;
    for (int i = 1; i <= 40; ++i) {
        before += std::to_string(i) + "\n";
        after += (i == 5 || i == 35 ? "changed" : std::to_string(i)) + "\n";
    }
    CHECK(diff(before, after) ==
          "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+changed\n 6\n 7\n 8\n"
          "@@ -32,7 +32,7 @@\n 32\n 33\n 34\n-35\n+changed\n 36\n 37\n 38\n");
    // The classic: a shortest edit of five lines.
    CHECK(diff("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n").find("@@ -1,7 +1,6 @@") !=
          std::string::npos);
}

TEST_CASE("unified diff: texts with nothing in common stay bounded", "[isolated]") {
    std::string before;
    std::string after;
    for (int i = 0; i < 20'000; ++i) {
        before += "old " + std::to_string(i) + "\n";
        after += "new " + std::to_string(i) + "\n";
    }
    std::string diff = unified_diff(before, after, "a", "b");
    CHECK(diff.find("@@ -1,20000 +1,20000 @@") != std::string::npos);
    CHECK(is_text("gr\xc3\xbc\xc3\x9f"));
    CHECK_FALSE(is_text(std::string_view("a\0b", 3)));
    CHECK_FALSE(is_text("\xff\xfe"));
}
