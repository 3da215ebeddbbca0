#include "agent/command/output_store.hpp"
#include "agent/command/registry.hpp"
#include "agent/files/file_info.hpp"
#include "agent/files/glob.hpp"
#include "agent/files/operations.hpp"
#include "agent/files/range.hpp"
#include "agent/files/replacement_file.hpp"
#include "agent/files/tree_walk.hpp"
#include "agent/metrics/usage.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::agent;
namespace fs = std::filesystem;

namespace {

bool matches(std::string_view pattern, std::string_view name) {
    auto glob = Glob::compile(pattern);
    INFO(pattern);
    REQUIRE(glob);
    return glob->matches(name);
}

/// A directory that goes away with the test.
class Scratch {
  public:
    Scratch() {
        char path[] = "/tmp/agent-test-XXXXXX";
        REQUIRE(::mkdtemp(path) != nullptr);
        path_ = path;
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }
    [[nodiscard]] const std::string& path() const { return path_; }
    std::string file(const std::string& name, const std::string& content) const {
        std::ofstream(at(name), std::ios::binary) << content;
        return at(name);
    }
    [[nodiscard]] std::string read(const std::string& name) const {
        std::ifstream in(at(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    [[nodiscard]] std::size_t entries() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
    }

  private:
    std::string path_;
};

std::string lines(std::string_view text, std::uint64_t offset, std::uint64_t limit,
                  std::size_t step = 1000) {
    LineWindow window(offset, limit);
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += step)
        window.feed(text.substr(at, step), out);
    return out;
}

}  // namespace

TEST_CASE("Globs match base names") {
    CHECK(matches("", "anything"));
    CHECK(matches("**", ".hidden"));
    CHECK(matches("*", ".hidden"));
    CHECK(matches("*.py", "a.py"));
    CHECK_FALSE(matches("*.py", "a.pyc"));
    CHECK(matches("**/*.py", "a.py"));
    CHECK(matches("**/**/*.py", "a.py"));
    CHECK(matches("*.py/**", "a.py"));
    CHECK_FALSE(matches("src/*.py", "a.py"));
    CHECK_FALSE(matches("src/*.py", "src"));
    CHECK(matches("a?c", "abc"));
    CHECK(matches("a?c", "aéc"));
    CHECK(matches("a?c",
                  "a\xff"
                  "c"));
    CHECK_FALSE(matches("a?c", "ac"));
    CHECK(matches("[a-c]x", "bx"));
    CHECK_FALSE(matches("[!a-c]x", "bx"));
    CHECK(matches("[^a-c]x", "dx"));
    CHECK(matches("[]x]", "]"));
    CHECK(matches("[é-ü]", "ö"));
    CHECK(matches("{a,b*}.txt", "bcd.txt"));
    CHECK(matches("x{a,{b,c}}y", "xcy"));
    CHECK(matches("{,x}a", "a"));
    CHECK(matches("\\*", "*"));
    CHECK_FALSE(matches("\\*", "x"));
    CHECK(matches("[\\]]", "]"));
    CHECK(matches("!*.py", "a.txt"));
    CHECK_FALSE(matches("!*.py", "a.py"));
    CHECK(matches("a*b*c", "a-b-b-c"));
    CHECK_FALSE(matches("a*b*c", "a-b-b-"));
    CHECK(matches("a\\{b", "a{b"));
}

TEST_CASE("Bad globs are refused") {
    for (std::string_view bad : {"[a", "{a", "a\\", "[b-a]", "{a,{b}", "[!"}) {
        INFO(bad);
        CHECK_FALSE(Glob::compile(bad));
    }
    CHECK_FALSE(Glob::compile(std::string(5000, 'a')));
    CHECK_FALSE(Glob::compile("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"));
}

TEST_CASE("A glob of many stars does not take exponential time") {
    std::string pattern;
    for (int i = 0; i < 100; ++i)
        pattern += "*a";
    CHECK_FALSE(matches(pattern + "b", std::string(255, 'a')));
}

TEST_CASE("Ranges are clamped, and told apart from wrong ones") {
    using Kind = ByteRange::Kind;
    struct Case {
        const char* header;
        Kind kind;
        std::uint64_t first;
        std::uint64_t length;
    };
    const Case cases[] = {
        {"", Kind::whole, 0, 0},
        {"bytes=0-9", Kind::part, 0, 10},
        {"bytes=5-", Kind::part, 5, 95},
        {"bytes=-10", Kind::part, 90, 10},
        {"bytes=-200", Kind::part, 0, 100},
        {"bytes=90-200", Kind::part, 90, 10},
        {"bytes=0-0,5-6", Kind::part, 0, 1},
        {"bytes= 1 - 2 ", Kind::part, 1, 2},
        {"bytes=100-", Kind::unsatisfiable, 0, 0},
        {"bytes=-0", Kind::unsatisfiable, 0, 0},
        {"bytes=9-5", Kind::malformed, 0, 0},
        {"bytes=x-5", Kind::malformed, 0, 0},
        {"bytes=-", Kind::malformed, 0, 0},
        {"lines=1-2", Kind::malformed, 0, 0},
        {"bytes=1", Kind::malformed, 0, 0},
        {"bytes=", Kind::malformed, 0, 0},
        {"bytes=1-99999999999999999999", Kind::malformed, 0, 0},
    };
    for (const Case& item : cases) {
        INFO(item.header);
        ByteRange range = parse_range(item.header, 100);
        CHECK(range.kind == item.kind);
        if (item.kind != Kind::part) continue;
        CHECK(range.first == item.first);
        CHECK(range.length == item.length);
    }
    CHECK(parse_range("bytes=0-0", 0).kind == Kind::unsatisfiable);
}

TEST_CASE("HTTP dates survive a round trip") {
    CHECK(to_http_date(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT");
    CHECK(*parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT") == 784111777);
    CHECK_FALSE(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT"));
    CHECK_FALSE(parse_http_date(""));
}

TEST_CASE("Line windows trim line ends, and the pieces make no difference") {
    const std::string text = "one\r\ntwo\n\nfo\rur\r\r\nfive\n";
    for (std::size_t step : {1U, 2U, 3U, 7U, 1000U}) {
        INFO(step);
        CHECK(lines(text, 1, 99, step) == "one\ntwo\n\nfo\rur\nfive");
        CHECK(lines(text, 2, 2, step) == "two\n");
        CHECK(lines(text, 4, 1, step) == "fo\rur");
        CHECK(lines(text, 6, 1, step).empty());
        CHECK(lines("last\r", 1, 1, step) == "last");
    }
}

TEST_CASE("Modes are octal digits read as decimal") {
    CHECK(mode_to_wire(0644) == 644);
    CHECK(mode_to_wire(04755) == 4755);
    CHECK(*mode_from_wire(755) == 0755);
    CHECK(*mode_from_wire(1777) == 01777);
    CHECK_FALSE(mode_from_wire(888));
    CHECK_FALSE(mode_from_wire(17777));
    CHECK_FALSE(mode_from_wire(-1));
}

TEST_CASE("Resource figures are read from the kernel's texts") {
    CHECK(*stat_value("anon 5\nfile 7\n", "file") == 7);
    CHECK_FALSE(stat_value("anon 5\nfilemapped 7", "file"));
    CHECK(*process_ticks("5 (a) b) S 1 5 5 0 -1 0 0 0 0 0 10 20 3 4 20 0 1") == 37);
    CHECK_FALSE(process_ticks("5 (a) S 1"));
    CHECK(*private_pages("100 50 20 1 0 5 0\n") == 30);
    Usage usage = read_usage(Environment());
    CHECK(usage.memory_total > 0);
    CHECK(usage.memory_used <= usage.memory_total);
    CHECK(usage.cpu_count > 0);
    Environment limited(
        {{"OPENSANDBOX_MEMORY_LIMIT_BYTES", "1048576"}, {"OPENSANDBOX_CPU_LIMIT", "0.5"}});
    CHECK(read_usage(limited).memory_total <= 1048576);
    CHECK(read_usage(limited).cpu_count <= 0.5);
}

TEST_CASE("A replaced file keeps its mode, and nothing else is left") {
    Scratch scratch;
    std::string path = scratch.file("a", "old");
    ::chmod(path.c_str(), 0640);
    {
        auto file = ReplacementFile::open(path, false);
        REQUIRE(file);
        REQUIRE(file->write("half"));
        // Not committed: the old content stays.
    }
    CHECK(scratch.read("a") == "old");
    CHECK(scratch.entries() == 1);
    auto file = ReplacementFile::open(path, false);
    REQUIRE(file);
    REQUIRE(file->write("new"));
    REQUIRE(file->commit(Permission()));
    CHECK(scratch.read("a") == "new");
    struct stat info{};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0640);
    CHECK(scratch.entries() == 1);
}

TEST_CASE("A file with two names and a link keep their shape when replaced") {
    Scratch scratch;
    std::string path = scratch.file("a", "old and longer");
    fs::create_hard_link(path, scratch.at("b"));
    fs::create_symlink("a", scratch.at("link"));
    auto file = ReplacementFile::open(scratch.at("link"), false);
    REQUIRE(file);
    REQUIRE(file->write("new"));
    REQUIRE(file->commit(Permission()));
    CHECK(scratch.read("b") == "new");
    CHECK(fs::is_symlink(scratch.at("link")));
    CHECK(fs::hard_link_count(path) == 2);
    CHECK(scratch.entries() == 3);
    CHECK(ReplacementFile::open(scratch.path(), false).error().code() == ErrorCode::conflict);
}

TEST_CASE("A link to nowhere yet is filled where it points to") {
    Scratch scratch;
    fs::create_symlink("target", scratch.at("link"));
    auto file = ReplacementFile::open(scratch.at("link"), true);
    REQUIRE(file);
    REQUIRE(file->write("x"));
    REQUIRE(file->commit(Permission()));
    CHECK(scratch.read("target") == "x");
    CHECK(fs::is_symlink(scratch.at("link")));
}

TEST_CASE("Every occurrence is replaced, also across the pieces that are read") {
    Scratch scratch;
    std::string path = scratch.file("a", "xxaaxx aaa");
    CHECK(*replace_in_file(path, "aa", "b") == 2);
    CHECK(scratch.read("a") == "xxbxx ba");
    CHECK(*replace_in_file(path, "none", "b") == 0);
    // A match on every boundary of one mebibyte.
    std::string big(std::size_t{3} << 20, '.');
    for (std::size_t at : {(std::size_t{1} << 20) - 3, (std::size_t{2} << 20) - 1}) {
        big.replace(at, 6, "needle");
    }
    scratch.file("big", big);
    CHECK(*replace_in_file(scratch.at("big"), "needle", "") == 2);
    CHECK(scratch.read("big").size() == big.size() - 12);
    CHECK(replace_in_file(scratch.at("none"), "a", "b").error().code() == ErrorCode::not_found);
}

TEST_CASE("A hard-linked file survives a replacement in it") {
    Scratch scratch;
    std::string path = scratch.file("a", "one two");
    fs::create_hard_link(path, scratch.at("b"));
    CHECK(*replace_in_file(path, "two", "three") == 1);
    CHECK(scratch.read("b") == "one three");
}

TEST_CASE("A tree is walked in order, links are not entered") {
    Scratch scratch;
    fs::create_directories(scratch.at("b/deep"));
    scratch.file("b/deep/x", "");
    scratch.file("b/.h", "");
    scratch.file("a", "");
    fs::create_directory_symlink("b", scratch.at("c"));
    auto names = [&](std::size_t depth) {
        std::vector<std::string> out;
        TreeWalk walk(scratch.path(), depth);
        while (const auto* entry = walk.next()) {
            out.push_back(entry->path.substr(scratch.path().size() + 1));
        }
        return out;
    };
    using Names = std::vector<std::string>;
    CHECK(names(0).empty());
    CHECK(names(1) == Names{"a", "b", "c"});
    CHECK(names(2) == Names{"a", "b", "b/.h", "b/deep", "c"});
    CHECK(names(9) == Names{"a", "b", "b/.h", "b/deep", "b/deep/x", "c"});
}

TEST_CASE("A move makes parents, and refuses an existing target and its own inside") {
    Scratch scratch;
    scratch.file("a", "1");
    REQUIRE(move_path(scratch.at("a"), scratch.at("x/y/b")));
    CHECK(scratch.read("x/y/b") == "1");
    scratch.file("a", "2");
    CHECK(move_path(scratch.at("a"), scratch.at("x/y/b")).error().code() == ErrorCode::conflict);
    CHECK(move_path(scratch.at("x"), scratch.at("x/z")).error().code() == ErrorCode::conflict);
    CHECK(move_path(scratch.at("n"), scratch.at("m")).error().code() == ErrorCode::not_found);
}

TEST_CASE("A move across file systems copies everything and then removes it") {
    Scratch scratch;
    char other[] = "/dev/shm/agent-test-XXXXXX";
    if (::mkdtemp(other) == nullptr) return;
    fs::create_directories(std::string(other) + "/tree/sub");
    std::ofstream(std::string(other) + "/tree/sub/f") << "content";
    fs::create_symlink("sub/f", std::string(other) + "/tree/l");
    ::chmod((std::string(other) + "/tree/sub").c_str(), 0500);
    CHECK(move_path(std::string(other) + "/tree", scratch.at("moved")));
    CHECK(scratch.read("moved/l") == "content");
    struct stat info{};
    CHECK(::stat(scratch.at("moved/sub").c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0500);
    CHECK(fs::is_empty(other));
    fs::remove_all(other);
}

TEST_CASE("Background output pages do not cut characters and end where it ends") {
    Scratch scratch;
    OutputDirectory directory(scratch.path());
    auto file = directory.create("one");
    REQUIRE(file);
    REQUIRE(write_fully((*file)->descriptor(), "abc€\xe2\x82", "output"));
    auto first = (*file)->read(0, 4, true);
    REQUIRE(first);
    CHECK(first->bytes == "abc");
    CHECK(first->next == 3);
    auto rest = (*file)->read(3, 100, true);
    CHECK(rest->bytes == "€");
    CHECK((*file)->read(6, 100, true)->next == 6);
    (*file)->release();
    CHECK((*file)->read(6, 100, false)->bytes == "\xe2\x82");
    CHECK((*file)->read(500, 100, false)->next == 500);
}

TEST_CASE("Long background output loses its beginning, never its offsets") {
    Scratch scratch;
    OutputDirectory directory(scratch.path());
    auto file = directory.create("one");
    REQUIRE(file);
    std::string mebibyte(std::size_t{1} << 20, 'x');
    for (int i = 0; i < 8; ++i)
        REQUIRE(write_fully((*file)->descriptor(), mebibyte, "output"));
    if (!(*file)->trim(std::uint64_t{2} << 20)) return;  // this file system cannot give back
    auto page = (*file)->read(0, 100, false);
    REQUIRE(page);
    CHECK(page->bytes == std::string(100, 'x'));
    CHECK(page->next == (std::uint64_t{6} << 20) + 100);
}

TEST_CASE("The output directory is private, comes back when removed, and goes with its owner") {
    Scratch scratch;
    {
        OutputDirectory directory(scratch.path());
        auto one = directory.create("one");
        REQUIRE(one);
        fs::path made = fs::directory_iterator(scratch.path())->path();
        CHECK((fs::status(made).permissions() & fs::perms::all) == fs::perms::owner_all);
        one->reset();
        fs::remove_all(made);
        CHECK(directory.create("two"));
    }
    CHECK(fs::is_empty(scratch.path()));
}

TEST_CASE("Ended commands are kept for a day, running ones for ever") {
    Scratch scratch;
    CommandRegistry registry(scratch.path());
    auto ended = registry.add("echo");
    registry.failed(ended, "exec: no");
    auto running = registry.add("sleep");
    registry.started(running, std::make_shared<Child>(1 << 30));
    CHECK(ended->status_json().find("\"running\":false,\"exit_code\":255,\"error\":\"exec: no\"") !=
          std::string::npos);
    registry.sweep(now() + std::chrono::hours(23));
    CHECK(registry.find(ended->id));
    registry.sweep(now() + std::chrono::hours(25));
    CHECK_FALSE(registry.find(ended->id));
    CHECK(registry.find(running->id));
    CHECK(running->status_json().find("exit_code") == std::string::npos);
}
