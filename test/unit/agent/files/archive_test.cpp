#include "http/message.hpp"
#include "unit/agent/agent_process.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;
namespace fs = std::filesystem;

namespace {

struct stat status_of(const std::string& path) {
    struct stat info{};
    INFO(path);
    REQUIRE(::lstat(path.c_str(), &info) == 0);
    return info;
}

unsigned mode_of(const std::string& path) {
    return status_of(path).st_mode & 07777;
}

std::string content_of(const std::string& path) {
    std::ifstream in(path);
    REQUIRE(in);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Reply pack(const AgentProcess& agent, const std::string& path, const std::string& more = "") {
    return agent.call("GET", "/files/archive?path=" + http::percent_encode(path) + more);
}

Reply unpack(const AgentProcess& agent, const std::string& archive, const std::string& path,
             const std::string& more = "") {
    return agent.call("POST", "/files/archive?path=" + http::percent_encode(path) + more, archive);
}

/// An archive of one empty file.
std::string archive_of(const std::string& name) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    header.replace(100, 7, "0000644");
    header.replace(108, 7, "0000000");
    header.replace(116, 7, "0000000");
    header.replace(124, 11, "00000000000");
    header.replace(136, 11, "00000000000");
    header.replace(148, 8, "        ");
    header.replace(156, 1, "0");
    header.replace(257, 8, std::string("ustar\00000", 8));
    unsigned sum = 0;
    for (unsigned char c : header)
        sum += c;
    for (std::size_t at = 153; at >= 148; --at, sum /= 8)
        header[at] = static_cast<char>('0' + sum % 8);
    header[154] = '\0';
    return header + std::string(1024, '\0');
}

/// A tree with a bit of everything below `scratch`/from.
std::string make_tree(const Scratch& scratch) {
    const std::string from = scratch.at("from");
    fs::create_directories(from + "/sub/empty");
    std::ofstream(from + "/file") << "content";
    std::ofstream(from + "/sub/large") << std::string(700'000, 'x');
    ::chmod((from + "/file").c_str(), 0750);
    ::chmod((from + "/sub").c_str(), 0711);
    fs::create_symlink("file", from + "/link");
    fs::create_hard_link(from + "/file", from + "/sub/second");
    return from;
}

}  // namespace

TEST_CASE("a packed directory is the same where it is unpacked") {
    Scratch scratch;
    AgentProcess agent;
    const std::string from = make_tree(scratch);
    const Reply packed = pack(agent, from);
    REQUIRE(packed.status == 200);
    CHECK(packed.fields.get("Content-Type") == "application/x-tar");
    const std::string to = scratch.at("a/b $HOME");
    REQUIRE(unpack(agent, packed.body, to).status == 200);
    CHECK(content_of(to + "/file") == "content");
    CHECK(mode_of(to + "/file") == 0750);
    CHECK(mode_of(to + "/sub") == 0711);
    CHECK(content_of(to + "/sub/large").size() == 700'000);
    CHECK(fs::read_symlink(to + "/link") == "file");
    CHECK(status_of(to + "/file").st_ino == status_of(to + "/sub/second").st_ino);
    CHECK(fs::is_directory(to + "/sub/empty"));
    CHECK(status_of(to + "/sub").st_mtim.tv_sec == status_of(from + "/sub").st_mtim.tv_sec);
    CHECK(status_of(to).st_mtim.tv_sec == status_of(from).st_mtim.tv_sec);
}

TEST_CASE("a single file may be packed under another name, links to it are followed") {
    Scratch scratch;
    AgentProcess agent;
    const std::string from = make_tree(scratch);
    REQUIRE(
        unpack(agent, pack(agent, from + "/link", "&name=other").body, scratch.at("to")).status ==
        200);
    CHECK(content_of(scratch.at("to/other")) == "content");
    CHECK(S_ISREG(status_of(scratch.at("to/other")).st_mode));
    REQUIRE(unpack(agent, pack(agent, from + "/link").body, scratch.at("to")).status == 200);
    CHECK(content_of(scratch.at("to/link")) == "content");
}

TEST_CASE("what is unpacked takes the place of files and keeps directories") {
    Scratch scratch;
    AgentProcess agent;
    const std::string archive = pack(agent, make_tree(scratch)).body;
    fs::create_directories(scratch.at("to/sub"));
    ::chmod(scratch.at("to/sub").c_str(), 0700);
    ::chmod(scratch.at("to").c_str(), 0701);
    std::ofstream(scratch.at("to/file")) << "a longer old content";
    std::ofstream(scratch.at("to/link")) << "no link";
    std::ofstream(scratch.at("to/kept")) << "kept";
    REQUIRE(unpack(agent, archive, scratch.at("to")).status == 200);
    CHECK(content_of(scratch.at("to/file")) == "content");
    CHECK(fs::is_symlink(scratch.at("to/link")));
    CHECK(content_of(scratch.at("to/kept")) == "kept");
    CHECK(mode_of(scratch.at("to/sub")) == 0700);
    CHECK(mode_of(scratch.at("to")) == 0701);
}

TEST_CASE("links to directories on the way are followed") {
    Scratch scratch;
    AgentProcess agent;
    const std::string archive = pack(agent, make_tree(scratch)).body;
    fs::create_directories(scratch.at("to"));
    fs::create_directories(scratch.at("elsewhere"));
    fs::create_directory_symlink(scratch.at("elsewhere"), scratch.at("to/sub"));
    REQUIRE(unpack(agent, archive, scratch.at("to")).status == 200);
    CHECK(fs::exists(scratch.at("elsewhere/large")));
    CHECK(fs::is_symlink(scratch.at("to/sub")));
}

TEST_CASE("a file and a directory do not take each other's place") {
    Scratch scratch;
    AgentProcess agent;
    const std::string archive = pack(agent, make_tree(scratch)).body;
    fs::create_directories(scratch.at("to/file"));
    CHECK(unpack(agent, archive, scratch.at("to")).status >= 400);
    CHECK(fs::is_directory(scratch.at("to/file")));
    fs::create_directories(scratch.at("two"));
    std::ofstream(scratch.at("two/sub")) << "a file";
    CHECK(unpack(agent, archive, scratch.at("two")).status >= 400);
    CHECK(content_of(scratch.at("two/sub")) == "a file");
    CHECK(unpack(agent, archive, scratch.at("two/sub")).status >= 400);
}

TEST_CASE("owner, group and mode may take the place of the archive's") {
    if (::geteuid() != 0) FAIL("this test changes owners: it needs root");
    Scratch scratch;
    AgentProcess agent;
    const std::string archive = pack(agent, make_tree(scratch)).body;
    const std::string to = scratch.at("new/to");
    REQUIRE(unpack(agent, archive, to, "&owner=4242&mode=700").status == 200);
    for (const char* name : {"", "/file", "/sub", "/link"}) {
        CHECK(status_of(to + name).st_uid == 4242);
        CHECK(status_of(to + name).st_gid == 4242);
    }
    CHECK(mode_of(to + "/file") == 0700);
    // Directories above that were missing are the owner's, too.
    CHECK(status_of(scratch.at("new")).st_uid == 4242);
    CHECK(mode_of(scratch.at("new")) == 0755);
    REQUIRE(unpack(agent, archive, scratch.at("by name"), "&owner=daemon&group=0").status == 200);
    CHECK(status_of(scratch.at("by name/file")).st_uid == 1);
    CHECK(status_of(scratch.at("by name/file")).st_gid == 0);
    CHECK(unpack(agent, archive, to, "&owner=nobodyhere").status == 400);
    CHECK(unpack(agent, archive, to, "&mode=9").status == 400);
}

TEST_CASE("an empty archive makes the directory") {
    Scratch scratch;
    AgentProcess agent;
    REQUIRE(unpack(agent, std::string(1024, '\0'), scratch.at("x/y")).status == 200);
    CHECK(mode_of(scratch.at("x/y")) == 0755);
}

TEST_CASE("wrong requests for archives are refused") {
    Scratch scratch;
    AgentProcess agent;
    CHECK(agent.call("GET", "/files/archive").status == 400);
    CHECK(pack(agent, "relative").status == 400);
    CHECK(pack(agent, scratch.at("none")).status == 404);
    CHECK(pack(agent, "/dev/null").status == 400);
    CHECK(pack(agent, scratch.path(), "&name=a/b").status == 400);
    CHECK(unpack(agent, std::string(2048, 'x'), scratch.at("to")).status == 400);
    // Names that lead out of the directory are not taken.
    CHECK(unpack(agent, archive_of("ordinary"), scratch.at("to")).status == 200);
    CHECK(unpack(agent, archive_of("../outside"), scratch.at("to")).status == 400);
    CHECK_FALSE(fs::exists(scratch.at("outside")));
}

TEST_CASE("a client that leaves in the middle of an archive leaves the agent at work") {
    Scratch scratch;
    AgentProcess agent;
    const std::string archive = pack(agent, make_tree(scratch)).body;
    for (int i = 0; i < 4; ++i) {
        RawConnection client(agent.port());
        client.send("POST /files/archive?path=" + scratch.at("cut") +
                    " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(archive.size()) +
                    "\r\n\r\n" + archive.substr(0, 5000));
    }
    CHECK(unpack(agent, archive, scratch.at("whole")).status == 200);
}

TEST_CASE("an agent that is stopped while an archive comes ends") {
    Scratch scratch;
    AgentProcess agent;
    const std::string archive = pack(agent, make_tree(scratch)).body;
    RawConnection client(agent.port());
    client.send("POST /files/archive?path=" + scratch.at("cut") +
                " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(archive.size()) +
                "\r\n\r\n" + archive.substr(0, 5000));
    REQUIRE(eventually([&] { return fs::exists(scratch.at("cut")); }));
    agent.signal(SIGTERM);
    CHECK(agent.wait() == 0);
}
