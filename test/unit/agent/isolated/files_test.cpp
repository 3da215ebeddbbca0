#include "base/scope_exit.hpp"
#include "isolated_agent.hpp"

#include <catch2/catch.hpp>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>

using namespace opensandbox::agent::testing;
namespace fs = std::filesystem;

namespace {

Reply upload(IsolatedAgent& agent, const std::string& id, const std::string& path,
             const std::string& content) {
    opensandbox::http::Fields fields;
    fields.set("Content-Type", "multipart/form-data; boundary=b");
    std::string body =
        "--b\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"metadata\""
        "\r\n\r\n{\"path\":\"" +
        path +
        "\",\"mode\":640}\r\n--b\r\nContent-Disposition: form-data; "
        "name=\"file\"; filename=\"f\"\r\n\r\n" +
        content + "\r\n--b--\r\n";
    return agent.agent().call("POST", "/v1/isolated/session/" + id + "/files/upload", body, fields);
}

}  // namespace

TEST_CASE("isolated: file routes see and change what the session sees", "[isolated]") {
    IsolatedAgent agent;
    const std::string ws = agent.workspace();
    agent.scratch().file("ws/below", "below\n");
    agent.scratch().file("ws/gone", "gone\n");
    std::string id = agent.session("overlay");
    CHECK(exit_code(agent.run(id, "rm gone; echo above > above; mkdir d; echo x > d/x")) == 0);
    CHECK(agent.call("GET", id, "/files/download?path=" + ws + "/below").body == "below\n");
    CHECK(agent.call("GET", id, "/files/download?path=" + ws + "/above").body == "above\n");
    CHECK(agent.call("GET", id, "/files/info?path=" + ws + "/gone").status == 404);
    CHECK(agent.call("GET", id, "/files/info?path=" + ws + "/d/x").status == 200);
    std::string list = agent.call("GET", id, "/directories/list?path=" + ws).body;
    CHECK(list.find("/above\"") != std::string::npos);
    CHECK(list.find("/gone\"") == std::string::npos);
    CHECK(agent.call("GET", id, "/files/search?path=" + ws + "&pattern=x").body.find("/d/x") !=
          std::string::npos);

    CHECK(upload(agent, id, ws + "/up/loaded", "uploaded").status == 200);
    CHECK(agent
              .call("POST", id, "/files/mv",
                    R"([{"src":")" + ws + R"(/above","dest":")" + ws + R"(/moved"}])")
              .status == 200);
    CHECK(agent
              .call("POST", id, "/files/replace",
                    R"({")" + ws + R"(/below":{"old":"below","new":"changed"}})")
              .status == 200);
    CHECK(agent.call("POST", id, "/files/permissions", R"({")" + ws + R"(/d/x":{"mode":600}})")
              .status == 200);
    CHECK(agent.call("POST", id, "/directories", R"({")" + ws + R"(/made":{"mode":700}})").status ==
          200);
    CHECK(agent.call("DELETE", id, "/directories?path=" + ws + "/d").status == 200);
    CHECK(agent.output(id, "cat up/loaded below moved; stat -c %a up/loaded made; ls") ==
          "uploadedchanged\nabove\n640\n700\nbelow\nmade\nmoved\nup\n");
    CHECK(agent.call("DELETE", id, "/files?path=" + ws + "/moved").status == 200);
    // The workspace itself is as it was, and the agent's own file routes see that.
    CHECK(agent.scratch().read("ws/below") == "below\n");
    CHECK(fs::exists(ws + "/gone"));
    CHECK_FALSE(fs::exists(ws + "/up"));
    CHECK(agent.agent().call("GET", "/files/info?path=" + ws + "/made").status == 404);
    CHECK(agent.agent().call("GET", "/files/download?path=" + ws + "/below").body == "below\n");
}

TEST_CASE("isolated: file routes write where the session may and nowhere else", "[isolated]") {
    IsolatedAgent agent;
    const std::string ws = agent.workspace();
    agent.scratch().file("ws/file", "text");
    std::string id = agent.session("ro");
    CHECK(agent.call("GET", id, "/files/download?path=" + ws + "/file").body == "text");
    CHECK(upload(agent, id, ws + "/new", "x").status == 403);
    CHECK(agent.call("DELETE", id, "/files?path=" + ws + "/file").status == 403);
    CHECK(agent.call("POST", id, "/directories", R"({")" + ws + R"(/d":{}})").status == 403);
    for (const char* path : {"/etc/passwd", "/", "relative", "~"}) {
        INFO(path);
        CHECK(agent.call("GET", id, std::string("/files/download?path=") + path).status == 400);
    }
    CHECK(agent.call("GET", id, "/files/download?path=" + ws + "/../private/x").status == 400);

    Reply made = agent.create(R"({"overlays":[{"path":")" + ws + R"(","persist":false}]})");
    std::string ephemeral = member(made.body, "session_id");
    CHECK(agent.call("GET", ephemeral, "/files/download?path=" + ws + "/file").body == "text");
    CHECK(upload(agent, ephemeral, ws + "/new", "x").status == 403);
    CHECK(agent.call("GET", ephemeral, "/diff").status == 400);

    CHECK(agent.call("GET", "11111111-1111-1111-1111-111111111111", "/files/info").status == 404);
}

TEST_CASE("isolated: a link that the session planted leads file routes nowhere outside",
          "[isolated]") {
    IsolatedAgent agent;
    const std::string ws = agent.workspace();
    std::string secret = agent.scratch().file("private/secret", "secret");
    std::string id = agent.session("overlay");
    CHECK(exit_code(agent.run(id, "ln -s " + secret + " link; ln -s /etc/new-file out; ln -s " +
                                      agent.scratch().at("private") + " dir")) == 0);
    // In there the private /tmp covers what the link names.
    CHECK(agent.call("GET", id, "/files/download?path=" + ws + "/link").status == 404);
    CHECK(upload(agent, id, ws + "/out", "x").status != 200);
    CHECK_FALSE(fs::exists("/etc/new-file"));
    CHECK(upload(agent, id, ws + "/dir/planted", "x").status != 200);
    CHECK_FALSE(fs::exists(agent.scratch().at("private/planted")));
    CHECK(agent.scratch().read("private/secret") == "secret");
}

TEST_CASE("isolated: where the disk cannot hold uppers they are kept in memory", "[isolated]") {
    IsolatedAgent agent("upper_max_bytes = 1048576\n");
    const Scratch& scratch = agent.scratch();
    const std::string ws = agent.workspace();
    // An overlay cannot have its upper on another one.
    for (const char* name : {"l", "u", "w"})
        fs::create_directory(scratch.at(name));
    std::string layers = "lowerdir=" + scratch.at("l") + ",upperdir=" + scratch.at("u") +
                         ",workdir=" + scratch.at("w");
    REQUIRE(::mount("overlay", agent.uppers().c_str(), "overlay", 0, layers.c_str()) == 0);
    opensandbox::ScopeExit unmount([&] { ::umount2(agent.uppers().c_str(), MNT_DETACH); });

    Reply able = agent.agent().call("GET", "/v1/isolated/capabilities");
    CHECK(member(able.body, "message").find("memory") != std::string::npos);
    CHECK(member(able.body, "commit_supported") == "true");
    scratch.file("ws/old", "old");
    const std::string profile = GENERATE("strict", "balanced");
    std::string id = agent.session("overlay", "\"profile\":\"" + profile + "\"");
    CHECK(agent.output(id, "echo x > x; rm old; cat x") == "x\n");
    CHECK(agent.call("GET", id, "/diff").body.find("/x\",\"kind\":\"added\"") != std::string::npos);
    Reply commit = agent.call("POST", id, "/commit");
    INFO(commit.body);
    CHECK(commit.status == 200);
    CHECK(scratch.read("ws/x") == "x\n");
    CHECK_FALSE(fs::exists(ws + "/old"));
    CHECK(agent.output(id, "cat x; echo y > y; ls") == "x\nx\ny\n");
    // The memory is bounded.
    CHECK(exit_code(agent.run(id, "head -c 2000000 /dev/zero > big")) != 0);
    CHECK(exit_code(agent.run(id, "echo raw > " + agent.uppers() + "/memory/0/upper/raw")) != 0);
}

TEST_CASE("isolated: with landlock writes are limited to the mounts of the session", "[isolated]") {
    IsolatedAgent agent("[landlock]\nenabled = true\n");
    Reply able = agent.agent().call("GET", "/v1/isolated/capabilities");
    std::string id;
    if (able.body.find(R"("landlock":{"state":"active")") == std::string::npos) {
        // Without it in the kernel a session that must have it is refused.
        CHECK(able.body.find(R"("landlock":{"state":"unsupported")") != std::string::npos);
        CHECK(agent.create(R"({"workspace":{"path":")" + agent.workspace() + "\"}}").status == 503);
        return;
    }
    id = agent.session("overlay");
    CHECK(agent.output(id,
                       "echo x > x; mv x y; cat y; echo t > /tmp/t; cat /tmp/t; echo n > "
                       "/dev/null; export V=1; rm y") == "x\nt\n");
    CHECK(agent.output(id, "echo $V") == "1\n");
    CHECK(exit_code(agent.run(id, "echo x > /etc/x")) != 0);
}
