#include "json/document.hpp"
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

constexpr const char* kBoundary = "opensandbox_0a1b_17";

std::string part(const std::string& name, const std::string& content, bool filename = true) {
    std::string out =
        std::string("--") + kBoundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"";
    if (filename) out += "; filename=\"" + name + "\"";
    return out + "\r\nContent-Type: application/octet-stream\r\n\r\n" + content + "\r\n";
}

Reply upload(const AgentProcess& agent, const std::string& parts, const std::string& prefix = "") {
    return agent.call(
        "POST", prefix + "/files/upload", parts + "--" + kBoundary + "--\r\n",
        {{"Content-Type", std::string("multipart/form-data; boundary=") + kBoundary}});
}

std::string metadata(const std::string& path, const std::string& mode = "644") {
    return "{\"path\":\"" + path + "\",\"owner\":null,\"group\":null,\"mode\":" + mode + "}";
}

unsigned mode_of(const std::string& path) {
    struct stat info{};
    REQUIRE(::lstat(path.c_str(), &info) == 0);
    return info.st_mode & 07777;
}

std::string code_of(const Reply& reply) {
    auto document = json::parse(reply.body);
    INFO(reply.body);
    REQUIRE(document);
    const json::value* code = json::find(document->get_object(), "code");
    return code ? std::string(code->get_string()) : std::string();
}

std::vector<std::string> paths_in(const Reply& reply) {
    REQUIRE(reply.status == 200);
    std::vector<std::string> out;
    auto document = json::parse(reply.body);
    REQUIRE(document);
    for (const auto& item : document->get_array()) {
        out.emplace_back(item.at("path").get_string());
    }
    return out;
}

}  // namespace

TEST_CASE("Uploads create directories, set modes and replace content at once") {
    AgentProcess agent;
    Scratch scratch;
    std::string content("binary\0\r\n--not-the-end\xff", 23);
    Reply reply = upload(
        agent, part("metadata", metadata(scratch.at("a/b/c.bin"), "600")) + part("file", content));
    INFO(reply.body);
    REQUIRE(reply.status == 200);
    CHECK(reply.body.empty());
    CHECK(scratch.read("a/b/c.bin") == content);
    CHECK(mode_of(scratch.at("a/b/c.bin")) == 0600);
    // Without a mode the old one stays; special bits are kept when asked for.
    REQUIRE(upload(agent, part("metadata", metadata(scratch.at("a/b/c.bin"), "0"), false) +
                              part("file", ""))
                .status == 200);
    CHECK(scratch.read("a/b/c.bin").empty());
    CHECK(mode_of(scratch.at("a/b/c.bin")) == 0600);
    REQUIRE(
        upload(agent, part("metadata", metadata(scratch.at("$x ~y"), "4755")) + part("file", "z"))
            .status == 200);
    CHECK(mode_of(scratch.at("$x ~y")) == 04755);
}

TEST_CASE("Several pairs of one upload are matched in order") {
    AgentProcess agent;
    Scratch scratch;
    Reply pairs =
        upload(agent, part("metadata", metadata(scratch.at("1"))) + part("file", "one") +
                          part("metadata", metadata(scratch.at("2"))) + part("file", "two"));
    CHECK(pairs.status == 200);
    Reply grouped = upload(agent, part("metadata", metadata(scratch.at("3"))) +
                                      part("metadata", metadata(scratch.at("4"))) +
                                      part("file", "three") + part("file", "four"));
    CHECK(grouped.status == 200);
    CHECK(scratch.read("1") + scratch.read("2") + scratch.read("3") + scratch.read("4") ==
          "onetwothreefour");
}

TEST_CASE("Wrong uploads say what is wrong and leave nothing") {
    AgentProcess agent;
    Scratch scratch;
    std::string good = part("metadata", metadata(scratch.at("x")));
    CHECK(code_of(upload(agent, "")) == "INVALID_FILE");
    CHECK(code_of(agent.call("POST", "/files/upload", "x")) == "INVALID_FILE");
    CHECK(code_of(upload(agent, part("file", "x"))) == "INVALID_FILE_METADATA");
    CHECK(code_of(upload(agent, good)) == "INVALID_FILE_CONTENT");
    CHECK(code_of(upload(agent, good + part("file", "1") + part("file", "2"))) == "INVALID_FILE");
    CHECK(code_of(upload(agent, part("metadata", "{") + part("file", "1"))) ==
          "INVALID_FILE_METADATA");
    CHECK(code_of(upload(agent, part("metadata", "{\"path\":\"\"}") + part("file", "1"))) ==
          "INVALID_FILE_METADATA");
    CHECK(upload(agent, part("metadata", metadata(scratch.path())) + part("file", "1")).status ==
          500);
    // A body that ends in the middle of the file.
    RawConnection cut(agent.port());
    std::string begin = part("metadata", metadata(scratch.at("cut"))) + part("file", "half");
    cut.send("POST /files/upload HTTP/1.1\r\nHost: a\r\nContent-Length: " +
             std::to_string(begin.size()) +
             "\r\nContent-Type: multipart/form-data; boundary=" + kBoundary + "\r\n\r\n" + begin);
    CHECK(cut.receive_until("}").find("400") != std::string::npos);
    CHECK_FALSE(fs::exists(scratch.at("cut")));
    CHECK(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("Downloads have the headers and bytes of the file") {
    AgentProcess agent;
    Scratch scratch;
    std::string content;
    for (int i = 0; i < 200'000; ++i)
        content += std::to_string(i) + "\n";
    scratch.file("data file.txt", content);
    std::string target = "/files/download?path=" + scratch.at("data%20file.txt");
    Reply reply = agent.call("GET", target);
    CHECK(reply.status == 200);
    CHECK(reply.body == content);
    CHECK(reply.fields.get("Content-Type") == "application/octet-stream");
    CHECK(reply.fields.get("Content-Disposition") == "attachment; filename=\"data file.txt\"");
    CHECK(reply.fields.get("Content-Length") == std::to_string(content.size()));
    CHECK(reply.fields.get("Accept-Ranges") == "bytes");
    std::string modified(reply.fields.get("Last-Modified").value_or(""));
    CHECK(agent.call("GET", target, "", {{"If-Modified-Since", modified}}).status == 304);
    Reply part = agent.call("GET", target, "", {{"Range", "bytes=10-19"}});
    CHECK(part.status == 206);
    CHECK(part.body == content.substr(10, 10));
    CHECK(part.fields.get("Content-Range") == "bytes 10-19/" + std::to_string(content.size()));
    CHECK(agent.call("GET", target, "", {{"Range", "bytes=-5"}}).body ==
          content.substr(content.size() - 5));
    Reply beyond = agent.call("GET", target, "", {{"Range", "bytes=99999999-"}});
    CHECK(beyond.status == 416);
    CHECK(beyond.fields.get("Content-Range") == "bytes */" + std::to_string(content.size()));
    Reply malformed = agent.call("GET", target, "", {{"Range", "bytes=z"}});
    CHECK(malformed.status == 416);
    CHECK(code_of(malformed) == "UNKNOWN");
    fs::create_symlink(scratch.at("data file.txt"), scratch.at("ünï"));
    CHECK(agent.call("GET", "/files/download?path=" + scratch.at("%C3%BCn%C3%AF"))
              .fields.get("Content-Disposition") ==
          "attachment; filename=\"%C3%BCn%C3%AF\"; filename*=UTF-8''%C3%BCn%C3%AF");
}

TEST_CASE("Downloads by line, of nothing, of directories and of kernel files") {
    AgentProcess agent;
    Scratch scratch;
    std::string target = "/files/download?path=" + scratch.file("l", "a\r\nb\nc\n");
    Reply lines = agent.call("GET", target + "&offset=2&limit=2");
    CHECK(lines.body == "b\nc");
    CHECK(lines.fields.get("Content-Type") == "text/plain; charset=utf-8");
    CHECK(agent.call("GET", target + "&limit=1").body == "a");
    CHECK(agent.call("GET", target + "&offset=9").body.empty());
    CHECK(agent.call("GET", target + "&offset=0").status == 400);
    CHECK(agent.call("GET", target + "&limit=x").status == 400);
    CHECK(agent.call("GET", target + "&limit=1", "", {{"Range", "bytes=0-1"}}).status == 400);
    CHECK(code_of(agent.call("GET", "/files/download")) == "MISSING_QUERY");
    Reply missing = agent.call("GET", "/files/download?path=/no/such");
    CHECK(missing.status == 404);
    CHECK(code_of(missing) == "FILE_NOT_FOUND");
    CHECK(agent.call("GET", "/files/download?path=" + scratch.path()).status == 400);
    CHECK(agent.call("GET", "/files/download?path=/dev/zero").status == 400);
    scratch.file("empty", "");
    Reply empty = agent.call("GET", "/files/download?path=" + scratch.at("empty"));
    CHECK(empty.status == 200);
    CHECK(empty.fields.get("Content-Length") == "0");
    CHECK(agent.call("GET", "/files/download?path=/proc/version").body.starts_with("Linux"));
}

TEST_CASE("File information is keyed by the requested path") {
    AgentProcess agent;
    Scratch scratch;
    std::string path = scratch.file("f", "12345");
    ::chmod(path.c_str(), 0640);
    fs::create_symlink("f", scratch.at("l"));
    Reply reply = agent.call("GET", "/files/info?path=" + path + "&path=" + scratch.at("l"));
    auto document = json::parse(reply.body);
    REQUIRE(document);
    const auto& file = document->at(path).get_object();
    CHECK(file.at("type") == "file");
    CHECK(file.at("size") == 5);
    CHECK(file.at("mode") == 640);
    CHECK(file.at("owner") == "root");
    CHECK(file.contains("modified_at"));
    CHECK(file.contains("created_at"));
    CHECK(document->at(scratch.at("l")).at("type") == "symlink");
    CHECK(agent.call("GET", "/files/info").body == "{}");
    CHECK(agent.call("GET", "/files/info?path=/no/such").status == 404);
}

TEST_CASE("Files are deleted, directories are not, links to nowhere are") {
    AgentProcess agent;
    Scratch scratch;
    scratch.file("f", "");
    fs::create_symlink("nowhere", scratch.at("l"));
    CHECK(agent
              .call("DELETE", "/files?path=" + scratch.at("f") + "&path=" + scratch.at("l") +
                                  "&path=" + scratch.at("none"))
              .status == 200);
    CHECK(fs::is_empty(scratch.path()));
    CHECK(agent.call("DELETE", "/files?path=" + scratch.path()).status == 500);
}

TEST_CASE("Directories are made, listed and deleted") {
    AgentProcess agent;
    Scratch scratch;
    CHECK(agent
              .call("POST", "/directories",
                    "{\"" + scratch.at("x/y") + "\":{\"mode\":1777},\"" + scratch.at("x") +
                        "\":{\"mode\":700}}")
              .status == 200);
    CHECK(mode_of(scratch.at("x/y")) == 01777);
    CHECK(mode_of(scratch.at("x")) == 0755);  // it existed by then
    scratch.file("x/f", "");
    CHECK(agent.call("POST", "/directories", "{\"" + scratch.at("x/f") + "\":{}}").status == 500);
    using Paths = std::vector<std::string>;
    std::string list = "/directories/list?path=" + scratch.path();
    CHECK(paths_in(agent.call("GET", list)) == Paths{scratch.at("x")});
    CHECK(paths_in(agent.call("GET", list + "&depth=2")) ==
          Paths{scratch.at("x"), scratch.at("x/f"), scratch.at("x/y")});
    CHECK(agent.call("GET", list + "&depth=0").body == "[]");
    CHECK(agent.call("GET", list + "&depth=-1").status == 400);
    CHECK(agent.call("GET", "/directories/list?path=" + scratch.at("x/f")).status == 400);
    CHECK(agent.call("GET", "/directories/list?path=/no/such").status == 404);
    CHECK(code_of(agent.call("GET", "/directories/list")) == "MISSING_QUERY");
    CHECK(agent.call("DELETE", "/directories?path=" + scratch.at("x") + "&path=/no/such").status ==
          200);
    CHECK(fs::is_empty(scratch.path()));
    CHECK(agent.call("DELETE", "/directories?path=/").status == 400);
}

TEST_CASE("Search finds files by base name at any depth") {
    AgentProcess agent;
    Scratch scratch;
    fs::create_directories(scratch.at("a/b"));
    scratch.file("a/b/x.py", "");
    scratch.file("y.py", "");
    scratch.file("z.txt", "");
    std::string search = "/files/search?path=" + scratch.path();
    using Paths = std::vector<std::string>;
    CHECK(paths_in(agent.call("GET", search + "&pattern=*.py")) ==
          Paths{scratch.at("a/b/x.py"), scratch.at("y.py")});
    CHECK(paths_in(agent.call("GET", search)).size() == 3);
    CHECK(agent.call("GET", search + "&pattern=none").body == "[]");
    CHECK(agent.call("GET", search + "&pattern=%5Ba").status == 400);
    CHECK(agent.call("GET", "/files/search?path=/no/such").status == 404);
    CHECK(paths_in(agent.call("GET", "/files/search?path=" + scratch.at("y.py"))) ==
          Paths{scratch.at("y.py")});
}

TEST_CASE("A search with a great many finds arrives whole") {
    AgentProcess agent;
    Scratch scratch;
    for (int i = 0; i < 4000; ++i)
        scratch.file("file-" + std::to_string(i), "");
    auto found = paths_in(agent.call("GET", "/files/search?path=" + scratch.path()));
    CHECK(found.size() == 4000);
    CHECK(std::ranges::is_sorted(found));
}

TEST_CASE("Replacement checks every file before it changes one") {
    AgentProcess agent;
    Scratch scratch;
    std::string path = scratch.file("f", "a b a");
    std::string body = "{\"" + path + "\":{\"old\":\"a\",\"new\":\"c\"}";
    Reply missing =
        agent.call("POST", "/files/replace", body + ",\"/no/such\":{\"old\":\"x\",\"new\":\"\"}}");
    CHECK(missing.status == 404);
    CHECK(scratch.read("f") == "a b a");
    Reply plain = agent.call("POST", "/files/replace", body + "}");
    CHECK(plain.status == 200);
    CHECK(plain.body.empty());
    CHECK(scratch.read("f") == "c b c");
    CHECK(agent.call("POST", "/files/replace?verbose=true", body + "}").body ==
          "{\"" + path + "\":{\"replacedCount\":0}}");
    CHECK(agent.call("POST", "/files/replace", "{\"" + path + "\":{\"old\":\"\"}}").status == 400);
}

TEST_CASE("Permissions and moves") {
    AgentProcess agent;
    Scratch scratch;
    std::string path = scratch.file("f", "1");
    CHECK(agent
              .call("POST", "/files/permissions",
                    "{\"" + path + "\":{\"mode\":600,\"owner\":\"1234\",\"group\":\"nogroup\"}}")
              .status == 200);
    struct stat info{};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    CHECK(info.st_uid == 1234);
    CHECK((info.st_mode & 0777) == 0600);
    CHECK(agent.call("POST", "/files/permissions", "{\"/no/such\":{\"mode\":600}}").status == 500);
    CHECK(agent.call("POST", "/files/permissions", "{\"" + path + "\":{\"mode\":888}}").status ==
          400);
    CHECK(agent
              .call("POST", "/files/mv",
                    "[{\"src\":\"" + path + "\",\"dest\":\"" + scratch.at("d/g") + "\"}]")
              .status == 200);
    CHECK(scratch.read("d/g") == "1");
    CHECK(agent.call("POST", "/files/mv", "[{\"src\":\"" + path + "\",\"dest\":\"/tmp/q\"}]")
              .status == 404);
}

TEST_CASE("File routes under an identity act as that user") {
    AgentProcess agent;
    Scratch scratch;
    ::chmod(scratch.path().c_str(), 0777);
    std::string secret = scratch.file("secret", "x");
    ::chmod(secret.c_str(), 0600);
    const std::string as = "/v1/filesystem/4321/8765";
    Reply stored =
        upload(agent, part("metadata", metadata(scratch.at("mine"))) + part("file", "y"), as);
    INFO(stored.body);
    REQUIRE(stored.status == 200);
    struct stat info{};
    REQUIRE(::stat(scratch.at("mine").c_str(), &info) == 0);
    CHECK(info.st_uid == 4321);
    CHECK(info.st_gid == 8765);
    CHECK(agent.call("GET", as + "/files/download?path=" + secret).status == 403);
    CHECK(agent.call("GET", "/files/download?path=" + secret).body == "x");
    CHECK(agent.call("GET", "/v1/filesystem/x/1/files/info").status == 400);
    CHECK(agent.call("GET", "/v1/filesystem/0/0/files/info?path=" + secret).status == 200);
}
