#include "isolated_agent.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

using namespace opensandbox::agent::testing;
namespace fs = std::filesystem;

namespace {

std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Whether a file can be made in a directory, from inside.
bool writable(IsolatedAgent& agent, const std::string& session, const std::string& directory) {
    auto events = agent.run(session, "touch " + directory + "/.probe 2>/dev/null");
    return exit_code(events) == 0;
}

}  // namespace

TEST_CASE("isolated: nothing of the sandbox can be written but the mounts", "[isolated]") {
    IsolatedAgent agent;
    const std::string profile = GENERATE("strict", "balanced");
    const std::string uid_mode = GENERATE("setpriv", "userns");
    INFO(profile << " " << uid_mode);
    std::string id =
        agent.session("rw", "\"profile\":\"" + profile + "\",\"uid_mode\":\"" + uid_mode + "\"");
    for (const char* directory : {"/", "/etc", "/root", "/usr", "/var", "/home", "/proc/sys/kernel",
                                  "/sys", "/dev", "/proc"}) {
        INFO(directory);
        CHECK_FALSE(writable(agent, id, directory));
    }
    CHECK_FALSE(writable(agent, id, agent.uppers()));
    CHECK(writable(agent, id, agent.workspace()));
    CHECK(fs::exists(agent.workspace() + "/.probe"));
    CHECK(writable(agent, id, "/dev/shm"));
    CHECK(writable(agent, id, "/tmp"));
    // /tmp is the sandbox's own in one profile only.
    CHECK(fs::exists("/tmp/.probe") == (profile == "balanced"));
    std::error_code ignored;
    fs::remove("/tmp/.probe", ignored);
    // Other sandbox directories below a private /tmp are not even seen.
    auto seen = agent.run(id, "ls " + agent.scratch().at("private"));
    CHECK((exit_code(seen) == 0) == (profile == "balanced"));
    // What the kernel's settings say stays so, whoever asks.
    auto kernel = agent.run(id, "echo 1 > /proc/sys/kernel/sysrq");
    CHECK(exit_code(kernel) != 0);
    for (const char* call : {"mount -t tmpfs none /mnt",
                             "umount -l "
                             "/tmp",
                             "mount -o remount,rw /", "unshare -U true", "unshare -m true",
                             "chroot / mount -o remount,rw /"}) {
        INFO(call);
        CHECK(exit_code(agent.run(id, call)) != 0);
    }
}

TEST_CASE("isolated: strict keeps no capability, balanced a container's few", "[isolated]") {
    IsolatedAgent agent;
    auto status = [&](const std::string& id, const std::string& name) {
        return agent.output(id,
                            "grep " + name + ": /proc/self/status | tr -d '[:alpha:][:space:]:' ");
    };
    std::string strict = agent.session("rw");
    CHECK(agent.output(strict,
                       "grep -E 'Cap(Prm|Eff|Bnd|Amb|Inh)' /proc/self/status | "
                       "grep -c 0000000000000000") == "5\n");
    CHECK(agent.output(strict, "grep NoNewPrivs /proc/self/status") == "NoNewPrivs:\t1\n");
    CHECK(agent.output(strict, "grep Seccomp: /proc/self/status") == "Seccomp:\t2\n");
    std::string balanced = agent.session("rw", R"("profile":"balanced")");
    CHECK(agent.output(balanced, "grep CapBnd /proc/self/status") == "CapBnd:\t00000000800405fb\n");
    CHECK(exit_code(agent.run(balanced, "touch o; chown 33:33 o; stat -c %u:%g o")) == 0);
    (void)status;
}

TEST_CASE("isolated: a session runs as the user that was asked for", "[isolated]") {
    IsolatedAgent agent;
    fs::permissions(agent.workspace(), fs::perms::all);
    std::string plain = agent.session("rw", R"("uid":1234,"gid":2345)");
    CHECK(agent.output(plain, "id -u; id -g; touch mine; stat -c %u:%g mine") ==
          "1234\n2345\n1234:2345\n");
    std::string mapped = agent.session("rw", R"("uid":1234,"gid":2345,"uid_mode":"userns")");
    CHECK(agent.output(mapped, "id -u; id -g; touch too; stat -c %u:%g too") ==
          "1234\n2345\n1234:2345\n");
    // Outside it is the agent's.
    CHECK(agent.output(agent.session("rw"), "stat -c %u:%g too") == "0:0\n");
}

TEST_CASE("isolated: processes outside can neither be seen nor signalled", "[isolated]") {
    IsolatedAgent agent;
    std::string id = agent.session("rw", R"("profile":"balanced")");
    std::string other = agent.session("rw");
    CHECK(agent.output(id, "ls -d /proc/[0-9]* | wc -l") != "0\n");
    pid_t outside = agent.agent().pid();
    auto events =
        agent.run(id, "kill -0 " + std::to_string(outside) + " && exit 9; kill -9 -1; true");
    CHECK(exit_code(events) != 9);
    // The first process of the session is not hit either.
    CHECK(agent.output(id, "echo alive") == "alive\n");
    CHECK(agent.output(other, "echo alive") == "alive\n");
    CHECK(agent.agent().call("GET", "/ping").status == 200);
    CHECK(exit_code(agent.run(id, "cat /proc/1/environ /proc/1/mem >/dev/null 2>&1")) != 0);
    CHECK(exit_code(agent.run(id, "ls /proc/1/root/ >/dev/null 2>&1 && exit 3; exit 4")) == 4);
}

TEST_CASE("isolated: a network of its own has only a loopback", "[isolated]") {
    IsolatedAgent agent;
    std::string id = agent.session("rw", R"("share_net":false)");
    CHECK(agent.output(id, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '") == "lo\n");
    auto events =
        agent.run(id, "exec 3<>/dev/tcp/127.0.0.1/" + std::to_string(agent.agent().port()));
    CHECK(exit_code(events) != 0);
}

TEST_CASE("isolated: binds come from the allowed directories only, links resolved", "[isolated]") {
    IsolatedAgent agent;
    const Scratch& scratch = agent.scratch();
    scratch.file("data/file", "shared\n");
    scratch.file("private/secret", "secret\n");
    fs::create_directory(scratch.at("data/sub"));
    fs::create_symlink(scratch.at("private"), scratch.at("data/way-out"));
    auto create = [&](const std::string& bind, const std::string& kind = "binds") {
        return agent.create(R"({"workspace":{"path":")" + agent.workspace() +
                            "\",\"mode\":\"rw\"},\"" + kind + "\":[" + bind + "]}");
    };
    auto source = [](const std::string& path, const std::string& more = {}) {
        return "{\"source\":\"" + path + "\"" + more + "}";
    };
    CHECK(create(source(scratch.at("private"))).status == 400);
    CHECK(create(source(scratch.at("data/way-out"))).status == 400);
    CHECK(create(source(scratch.at("data/way-out/secret"))).status == 400);
    CHECK(create(source(scratch.at("data/../private"))).status == 400);
    CHECK(create(source(scratch.at("data/missing"))).status == 400);
    CHECK(create(source(scratch.at("data"), ",\"dest\":\"/proc/x\"")).status == 400);
    CHECK(create("\"" + scratch.at("private") + "\"", "extra_writable").status == 400);
    CHECK(create("\"" + scratch.at("data/way-out") + "\"", "extra_writable").status == 400);

    Reply made = create(source(scratch.at("data"), ",\"dest\":\"/tmp/here\",\"readonly\":true") +
                        "," + source(scratch.at("data/file"), ",\"dest\":\"/tmp/one\""));
    INFO(made.body);
    REQUIRE(made.status == 201);
    std::string id = member(made.body, "session_id");
    CHECK(agent.output(id, "cat /tmp/here/file /tmp/one; echo more >> /tmp/one") ==
          "shared\nshared\n");
    CHECK(content(scratch.at("data/file")) == "shared\nmore\n");
    CHECK(exit_code(agent.run(id, "echo x > /tmp/here/new")) != 0);
    CHECK(exit_code(agent.run(id, "cat /tmp/here/way-out/secret")) != 0);
    Reply writable = create("\"" + scratch.at("data/sub") + "\"", "extra_writable");
    REQUIRE(writable.status == 201);
    id = member(writable.body, "session_id");
    CHECK(exit_code(agent.run(id, "echo x > " + scratch.at("data/sub/new"))) == 0);
    CHECK(content(scratch.at("data/sub/new")) == "x\n");
}

TEST_CASE("isolated: requests that break a rule are refused with its name", "[isolated]") {
    IsolatedAgent agent;
    const std::string ws = agent.workspace();
    auto refused = [&](const std::string& body, const std::string& word) {
        Reply reply = agent.create(body);
        INFO(body << " " << reply.body);
        CHECK(reply.status == 400);
        CHECK(reply.body.find("INVALID_REQUEST_BODY") != std::string::npos);
        CHECK(reply.body.find(word) != std::string::npos);
    };
    refused("{}", "workspace");
    refused("", "empty");
    refused(R"({"workspace":{"path":"relative"}})", "absolute");
    refused(R"({"workspace":{"path":"/a/../b"}})", "clean");
    refused(R"({"workspace":{"path":"/"}})", "workspace.path");
    refused(R"({"workspace":{"path":"/proc/1"}})", "workspace.path");
    refused(R"({"workspace":{"path":"/does-not-exist"}})", "does-not-exist");
    refused(R"({"workspace":{"path":")" + agent.uppers() + "\"}}", "overlaps");
    refused(R"({"workspace":{"path":")" + ws + R"(","mode":"copy"}})", "mode");
    refused(R"({"overlays":[{"path":")" + ws + R"(","mode":"rw","persist":true}]})", "persist");
    refused(R"({"workspace":{"path":")" + ws + R"("},"overlays":[{"path":")" + ws + "\"}]}",
            "more than once");
    refused(R"({"workspace":{"path":")" + ws + R"("},"profile":"loose"})", "profile");
    refused(R"({"workspace":{"path":")" + ws + R"("},"uid_mode":"sudo"})", "uid_mode");
    refused(R"({"workspace":{"path":")" + ws + R"("},"uid":-1})", "uid");
    refused(R"({"workspace":{"path":")" + ws + R"("},"env_passthrough":{"mode":"some"}})",
            "env_passthrough");
    std::string many = R"({"overlays":[)";
    for (int i = 0; i < 17; ++i)
        many += (i ? "," : "") + std::string("{\"path\":\"/many/") + std::to_string(i) + "\"}";
    refused(many + "]}", "16");
    CHECK(fs::is_empty(agent.uppers()));
}
