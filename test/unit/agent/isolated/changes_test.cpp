#include "isolated_agent.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

using namespace opensandbox::agent::testing;
namespace fs = std::filesystem;

namespace {

void fill(const std::string& ws) {
    std::ofstream(ws + "/kept.txt") << "kept\n";
    std::ofstream(ws + "/edited.txt") << "one\ntwo\nthree\n";
    std::ofstream(ws + "/gone.txt") << "gone\n";
    fs::create_directories(ws + "/tree/sub");
    std::ofstream(ws + "/tree/a") << "a\n";
    std::ofstream(ws + "/tree/sub/b") << "b\n";
    fs::create_directories(ws + "/replaced/old");
    std::ofstream(ws + "/replaced/x") << "old x\n";
    std::ofstream(ws + "/replaced/old/y") << "old y\n";
    fs::create_symlink("kept.txt", ws + "/link");
}

constexpr const char* kWork =
    "printf 'one\\n2\\nthree\\n' > edited.txt; rm gone.txt; rm -r tree; "
    "rm -r replaced; mkdir replaced; echo new > replaced/x; chmod 750 replaced; "
    "echo fresh > fresh; chmod 4711 fresh; ln fresh twin; ln -sfn edited.txt link; "
    "mkdir -p deep/er; echo d > deep/er/file; mkfifo pipe; touch kept.txt";

bool has(const Reply& reply, const std::string& path, const std::string& kind,
         const std::string& type) {
    return reply.body.find("{\"path\":\"" + path + "\",\"kind\":\"" + kind + "\",\"type\":\"" +
                           type + "\"") != std::string::npos;
}

std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("isolated: the diff of an overlay names what was added, modified and deleted",
          "[isolated]") {
    IsolatedAgent agent;
    const std::string ws = agent.workspace();
    fill(ws);
    std::string id = agent.session("overlay");
    CHECK(agent.call("GET", id, "/diff").body.find("\"changes\":[]") != std::string::npos);
    CHECK(exit_code(agent.run(id, kWork)) == 0);
    Reply diff = agent.call("GET", id, "/diff");
    INFO(diff.body);
    REQUIRE(diff.status == 200);
    CHECK(has(diff, ws + "/edited.txt", "modified", "file"));
    CHECK(has(diff, ws + "/gone.txt", "deleted", "file"));
    CHECK(has(diff, ws + "/tree", "deleted", "directory"));
    CHECK(has(diff, ws + "/replaced", "modified", "directory"));
    CHECK(has(diff, ws + "/replaced/x", "modified", "file"));
    CHECK(has(diff, ws + "/replaced/old", "deleted", "directory"));
    CHECK(has(diff, ws + "/fresh", "added", "file"));
    CHECK(has(diff, ws + "/link", "modified", "symlink"));
    CHECK(has(diff, ws + "/deep/er/file", "added", "file"));
    CHECK(has(diff, ws + "/pipe", "added", "other"));
    CHECK(diff.body.find("\"size\":6,\"mode\":4711") != std::string::npos);
    // Only its time changed.
    CHECK(diff.body.find("kept.txt\"") == std::string::npos);
    // Nothing of it is in the workspace itself.
    CHECK(content(ws + "/edited.txt") == "one\ntwo\nthree\n");
    CHECK(fs::exists(ws + "/tree/sub/b"));

    Reply text = agent.call("GET", id, "/diff?path=" + ws + "/edited.txt");
    CHECK(text.fields.get("Content-Type") == "text/x-diff; charset=utf-8");
    CHECK(text.body == "--- a" + ws + "/edited.txt\n+++ b" + ws +
                           "/edited.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    Reply gone = agent.call("GET", id, "/diff?path=" + ws + "/gone.txt");
    CHECK(gone.body == "--- a" + ws + "/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n");
    CHECK(agent.call("GET", id, "/diff?path=" + ws + "/kept.txt").status == 404);
}

TEST_CASE("isolated: a commit makes the workspace what the overlay shows", "[isolated]") {
    IsolatedAgent agent;
    const std::string ws = agent.workspace();
    fill(ws);
    std::string id = agent.session("overlay");
    CHECK(exit_code(agent.run(id, kWork)) == 0);
    Reply commit = agent.call("POST", id, "/commit");
    INFO(commit.body);
    REQUIRE(commit.status == 200);
    CHECK(commit.body.find("\"changes\":[]") != std::string::npos);
    CHECK(content(ws + "/edited.txt") == "one\n2\nthree\n");
    CHECK_FALSE(fs::exists(ws + "/gone.txt"));
    CHECK_FALSE(fs::exists(ws + "/tree"));
    CHECK(content(ws + "/replaced/x") == "new\n");
    CHECK_FALSE(fs::exists(ws + "/replaced/old"));
    CHECK(fs::read_symlink(ws + "/link") == "edited.txt");
    CHECK(content(ws + "/deep/er/file") == "d\n");
    struct stat fresh{};
    struct stat twin{};
    REQUIRE(::stat((ws + "/fresh").c_str(), &fresh) == 0);
    REQUIRE(::stat((ws + "/twin").c_str(), &twin) == 0);
    CHECK((fresh.st_mode & 07777) == 04711);
    CHECK(fresh.st_ino == twin.st_ino);
    struct stat info{};
    REQUIRE(::stat((ws + "/replaced").c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0750);
    REQUIRE(::lstat((ws + "/pipe").c_str(), &info) == 0);
    CHECK(S_ISFIFO(info.st_mode));
    for (const auto& entry : fs::recursive_directory_iterator(ws))
        CHECK(entry.path().filename().string().find(".commit-") == std::string::npos);

    // The session goes on, over what is there now.
    CHECK(agent.output(id, "cat edited.txt; ls; echo again > fresh; cat fresh") ==
          "one\n2\nthree\ndeep\nedited.txt\nfresh\nkept.txt\nlink\npipe\nreplaced\ntwin\nagain\n");
    CHECK(content(ws + "/fresh") == "fresh\n");
    CHECK(agent.call("POST", id, "/commit").status == 200);
    CHECK(content(ws + "/fresh") == "again\n");
}

TEST_CASE("isolated: a commit can be of chosen paths", "[isolated]") {
    IsolatedAgent agent;
    const std::string ws = agent.workspace();
    fill(ws);
    std::string id = agent.session("overlay");
    CHECK(exit_code(agent.run(id, kWork)) == 0);
    Reply commit = agent.call("POST", id, "/commit",
                              R"({"paths":[")" + ws + "/deep/er\",\"" + ws + "/gone.txt\"]}");
    INFO(commit.body);
    REQUIRE(commit.status == 200);
    CHECK(content(ws + "/deep/er/file") == "d\n");
    CHECK_FALSE(fs::exists(ws + "/gone.txt"));
    CHECK(content(ws + "/edited.txt") == "one\ntwo\nthree\n");
    CHECK_FALSE(has(commit, ws + "/gone.txt", "deleted", "file"));
    CHECK(has(commit, ws + "/edited.txt", "modified", "file"));
    CHECK(agent.output(id, "cat edited.txt deep/er/file; ls gone.txt 2>&1 | wc -l") ==
          "one\n2\nthree\nd\n1\n");
    CHECK(agent.call("POST", id, "/commit", R"({"paths":["/etc"]})").status == 400);
}

TEST_CASE("isolated: a commit does not overwrite what others changed, unless told", "[isolated]") {
    IsolatedAgent agent;
    const std::string ws = agent.workspace();
    fill(ws);
    std::string id = agent.session("overlay");
    CHECK(exit_code(agent.run(id, kWork)) == 0);
    std::ofstream(ws + "/edited.txt") << "of someone else\n";
    std::ofstream(ws + "/tree/sub/b") << "of someone else\n";
    Reply refused = agent.call("POST", id, "/commit");
    CHECK(refused.status == 409);
    CHECK(refused.body.find(ws + "/edited.txt") != std::string::npos);
    CHECK(refused.body.find(ws + "/tree/sub/b") != std::string::npos);
    CHECK(content(ws + "/edited.txt") == "of someone else\n");
    CHECK(fs::exists(ws + "/gone.txt"));
    CHECK(agent.call("POST", id, "/commit", R"({"force":true})").status == 200);
    CHECK(content(ws + "/edited.txt") == "one\n2\nthree\n");
    CHECK_FALSE(fs::exists(ws + "/tree"));
}

TEST_CASE("isolated: mounts below an overlay stay when it is committed", "[isolated]") {
    IsolatedAgent agent;
    const std::string ws = agent.workspace();
    fs::create_directory(ws + "/in");
    std::ofstream(agent.scratch().at("data/d")) << "data\n";
    std::string id =
        agent.session("overlay", R"("binds":[{"source":")" + agent.scratch().at("data") +
                                     R"(","dest":")" + ws + R"(/in"}])");
    CHECK(agent.output(id, "cat in/d; echo w > w; echo more > in/e") == "data\n");
    CHECK(agent.call("POST", id, "/commit").status == 200);
    CHECK(agent.output(id, "cat in/d in/e w") == "data\nmore\nw\n");
    CHECK(content(agent.scratch().at("data/e")) == "more\n");
    CHECK(content(ws + "/w") == "w\n");
}
