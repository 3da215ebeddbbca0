#include "imagebuild/context.hpp"

#include "image/archive_reader.hpp"
#include "imagebuild/context_archive.hpp"
#include "imagebuild/selection.hpp"
#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

using namespace opensandbox;
using namespace opensandbox::imagebuild;
namespace fs = std::filesystem;

namespace {

using Names = std::vector<std::string>;

/// A directory to build from.
struct Tree {
    void write(const std::string& path, const std::string& content, unsigned mode = 0644) {
        fs::create_directories((root / path).parent_path());
        std::ofstream(root / path) << content;
        ::chmod((root / path).c_str(), mode);
    }
    Context open(const std::string& ignore = "") {
        auto rules = IgnoreRules::parse(ignore, ".dockerignore");
        REQUIRE(rules);
        auto context = Context::open(root, *rules);
        REQUIRE(context);
        return std::move(*context);
    }

    test_support::ScratchDirectory scratch;
    fs::path root = scratch.path;
};

Names names_of(const Context& context) {
    Names names;
    for (const auto& [path, entry] : context.entries()) {
        if (!path.empty()) names.push_back(path);
    }
    return names;
}

Names members_of(const Selection& selection) {
    Names names;
    for (const Member& member : selection.members)
        names.push_back(member.name);
    return names;
}

Selection selected(const Context& context, const Names& sources) {
    auto selection = select(context.entries(), sources);
    INFO((selection ? "" : selection.error().message()));
    REQUIRE(selection);
    return std::move(*selection);
}

/// The archive's bytes as a stream.
class ArchiveBytes : public image::InputStream {
  public:
    explicit ArchiveBytes(ContextArchive& archive) : archive_(archive) {}
    Result<std::size_t> read(std::span<char> into) override { return archive_.read(into); }

  private:
    ContextArchive& archive_;
};

}  // namespace

TEST_CASE("a context holds what is not ignored, with the directories above") {
    Tree tree;
    tree.write("a.txt", "a");
    tree.write("skip/b.txt", "b");
    tree.write("skip/keep.txt", "c");
    tree.write("deep/x/y.txt", "d");
    CHECK(names_of(tree.open()) ==
          Names{"a.txt", "deep", "deep/x", "deep/x/y.txt", "skip", "skip/b.txt", "skip/keep.txt"});
    CHECK(names_of(tree.open("skip\n!skip/keep.txt\n**/y.txt\n")) ==
          Names{"a.txt", "deep", "deep/x", "skip", "skip/keep.txt"});
    CHECK(!Context::open(tree.root / "none", IgnoreRules()));
    CHECK(!Context::open(tree.root / "a.txt", IgnoreRules()));
}

TEST_CASE("a directory stands for what is in it, a file for itself") {
    Tree tree;
    tree.write("d/one", "1");
    tree.write("d/e/two", "2");
    tree.write("d-other", "3");
    const Context context = tree.open();
    CHECK(members_of(selected(context, {"d"})) == Names{".", "e", "e/two", "one"});
    CHECK(members_of(selected(context, {"./d/../d/"})) == Names{".", "e", "e/two", "one"});
    Selection file = selected(context, {"/d/one"});
    CHECK(members_of(file) == Names{"one"});
    CHECK(file.single_file);
    CHECK_FALSE(selected(context, {"d"}).single_file);
    CHECK_FALSE(selected(context, {"d"}).several);
    CHECK(selected(context, {"d/one", "d-other"}).several);
    CHECK(members_of(selected(context, {"."})).size() == 6);
}

TEST_CASE("wildcards choose among the names of one directory") {
    Tree tree;
    tree.write("a.py", "");
    tree.write("b.py", "");
    tree.write("c.txt", "");
    tree.write("s/d.py", "");
    const Context context = tree.open();
    CHECK(members_of(selected(context, {"*.py"})) == Names{"a.py", "b.py"});
    CHECK(members_of(selected(context, {"?/d.py"})) == Names{"d.py"});
    CHECK(!select(context.entries(), {"*.rs"}));
}

TEST_CASE("sources outside the context or not there are refused") {
    Tree tree;
    tree.write("a", "");
    const Context context = tree.open("a\n");
    for (const char* source : {"a", "b", "../a", "a/b"}) {
        auto selection = select(context.entries(), {source});
        REQUIRE(!selection);
        CHECK(selection.error().message().find("'" + std::string(source) + "'") == 0);
    }
}

TEST_CASE("links by name are followed within the context, links inside stay links") {
    Tree tree;
    tree.write("d/file", "x");
    fs::create_symlink("d", tree.root / "to_d");
    fs::create_symlink("/d/file", tree.root / "to_file");
    fs::create_symlink("../out", tree.root / "out");
    fs::create_symlink("loop", tree.root / "loop");
    fs::create_symlink("file", tree.root / "d/inner");
    const Context context = tree.open();
    CHECK(members_of(selected(context, {"to_d"})) == Names{".", "file", "inner"});
    const Selection file = selected(context, {"to_file"});
    CHECK(file.members[0].source == "d/file");
    CHECK(file.members[0].name == "to_file");
    CHECK(selected(context, {"to_d/file"}).members[0].source == "d/file");
    CHECK(!select(context.entries(), {"out"}));
    CHECK(!select(context.entries(), {"loop"}));
}

TEST_CASE("the archive of a selection has modes, contents and links, owned by root") {
    Tree tree;
    tree.write("d/run.sh", "#!/bin/sh\n", 0755);
    tree.write("d/large", std::string(600'000, 'x'));
    fs::create_symlink("run.sh", tree.root / "d/link");
    const Context context = tree.open();
    ContextArchive archive(context, selected(context, {"d"}), "");
    ArchiveBytes bytes(archive);
    image::ArchiveReader reader(bytes, image::ArchiveReader::Kind::tar);
    std::map<std::string, std::string> found;
    for (;;) {
        auto entry = reader.next();
        REQUIRE(entry);
        if (!*entry) break;
        CHECK(archive_entry_uid(*entry) == 0);
        CHECK(archive_entry_gid(*entry) == 0);
        std::string text = std::to_string(archive_entry_perm(*entry));
        if (const char* target = archive_entry_symlink(*entry)) text = target;
        if (std::string_view(archive_entry_pathname(*entry)) == "large") {
            text = std::to_string(archive_entry_size(*entry));
        }
        found[archive_entry_pathname(*entry)] = text;
    }
    CHECK(found["run.sh"] == std::to_string(0755));
    CHECK(found["large"] == "600000");
    CHECK(found["link"] == "run.sh");
    CHECK(found.contains("./"));
}

TEST_CASE("a file that is gone when it is sent fails the archive") {
    Tree tree;
    tree.write("a", "x");
    const Context context = tree.open();
    fs::remove(tree.root / "a");
    ContextArchive archive(context, selected(context, {"a"}), "b");
    std::vector<char> piece(4096);
    Result<std::size_t> count = archive.read(piece);
    while (count && *count > 0)
        count = archive.read(piece);
    REQUIRE(!count);
    CHECK(count.error().message().find("/a") != std::string::npos);
}

TEST_CASE("a digest is that of the content, also after a change") {
    Tree tree;
    tree.write("a", "x");
    tree.write("b", "x");
    Context context = tree.open();
    const std::string first = *context.digest_of("a");
    CHECK(first == *context.digest_of("b"));
    tree.write("a", "other");
    CHECK(*context.digest_of("a") != first);
}

TEST_CASE("ADD knows archives by their content") {
    Tree tree;
    tree.write("d/x", "y");
    tree.write("plain.txt", "text");
    tree.write("short.gz", "\x1f\x8b");
    tree.write("other.xz", std::string("\xfd"
                                       "7zXZ\0",
                                       6));
    const Context context = tree.open();
    ContextArchive archive(context, selected(context, {"d"}), "");
    std::ofstream out(tree.root / "real.tar");
    std::vector<char> piece(65536);
    for (;;) {
        auto count = archive.read(piece);
        REQUIRE(count);
        if (*count == 0) break;
        out.write(piece.data(), static_cast<std::streamsize>(*count));
    }
    out.close();
    CHECK(*is_archive(tree.root / "real.tar"));
    CHECK_FALSE(*is_archive(tree.root / "plain.txt"));
    CHECK_FALSE(*is_archive(tree.root / "short.gz"));
    CHECK(!is_archive(tree.root / "other.xz"));
}
