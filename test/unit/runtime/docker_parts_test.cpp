#include "runtime/docker/host_ports.hpp"
#include "runtime/docker/names.hpp"
#include "runtime/docker/sidecar_spec.hpp"
#include "runtime/docker/tar_archive.hpp"
#include "runtime/docker/volume_plan.hpp"
#include "runtime/host_command.hpp"
#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <set>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::docker;

namespace {

template <class T>
std::string wire_of(const Result<T>& result) {
    return result ? std::string("none") : result.error().wire();
}

}  // namespace

TEST_CASE("reserved ports are different and come back", "[runtime][docker]") {
    HostPorts ports(1000, 1003, [](std::uint16_t port) { return port != 1002; });
    std::set<std::uint16_t> seen;
    {
        auto first = ports.reserve(2);
        REQUIRE(first);
        auto second = ports.reserve(1);
        REQUIRE(second);
        seen.insert(first->ports.begin(), first->ports.end());
        seen.insert(second->ports.begin(), second->ports.end());
        CHECK(seen == std::set<std::uint16_t>{1000, 1001, 1003});
        auto none = ports.reserve(1);
        REQUIRE_FALSE(none);
        CHECK(none.error().code() == ErrorCode::resource_exhausted);
    }
    CHECK(ports.reserve(3));
}

TEST_CASE("a port that somebody listens on cannot be bound", "[runtime][docker]") {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(socket.get(), 1) == 0);
    socklen_t size = sizeof at;
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size);
    CHECK_FALSE(can_bind("127.0.0.1", ntohs(at.sin_port)));
    // An address of no interface here is tried on the wildcard.
    CHECK_FALSE(can_bind("192.0.2.1", ntohs(at.sin_port)));
    socket.reset();
    CHECK(can_bind("127.0.0.1", ntohs(at.sin_port)));
}

TEST_CASE("tar reads the archive that holds the agent", "[runtime][docker]") {
    test_support::ScratchDirectory scratch;
    TarArchive archive;
    std::string content(1300, 'x');
    archive.add_file("opensandbox", content, 0755);
    archive.add_link("execd", "opensandbox");
    archive.add_file("empty", "", 0600);
    std::string file = (scratch.path / "a.tar").string();
    std::ofstream(file, std::ios::binary) << archive.finish();
    REQUIRE(run_host_command({"tar", "-C", scratch.path.string(), "-xpf", file},
                             std::chrono::seconds(20)));
    CHECK(std::filesystem::file_size(scratch.path / "opensandbox") == content.size());
    CHECK(std::filesystem::file_size(scratch.path / "execd") == content.size());
    CHECK(std::filesystem::is_symlink(scratch.path / "execd"));
    CHECK(std::filesystem::file_size(scratch.path / "empty") == 0);
    auto mode = std::filesystem::status(scratch.path / "opensandbox").permissions();
    CHECK(mode == std::filesystem::perms(0755));
}

TEST_CASE("a state directory has one server id", "[runtime][docker]") {
    test_support::ScratchDirectory scratch;
    auto first = server_id(scratch.path);
    REQUIRE(first);
    auto again = server_id(scratch.path);
    REQUIRE(again);
    CHECK(*first == *again);
    std::ofstream(scratch.path / "server-id") << "garbage";
    auto healed = server_id(scratch.path);
    REQUIRE(healed);
    CHECK(*healed != "garbage");
    CHECK_FALSE(server_id(scratch.path / "missing"));
}

TEST_CASE("volumes of the server's own cannot be claimed", "[runtime][docker]") {
    CHECK(is_claimable("data"));
    CHECK(is_claimable("opensandbox"));
    CHECK_FALSE(is_claimable("opensandbox-agent-0123"));
    CHECK_FALSE(is_claimable("opensandbox-runtime-x"));
    model::Volume volume;
    volume.mount_path = "/data";
    volume.read_only = true;
    auto bind = bind_of(volume, "/srv/x");
    REQUIRE(bind);
    CHECK(*bind == "/srv/x:/data:ro");
    CHECK(wire_of(bind_of(volume, "/srv:/x")) == "VOLUME::INVALID_HOST_PATH");
    volume.mount_path = "/data:rw";
    CHECK(wire_of(bind_of(volume, "/srv")) == "VOLUME::INVALID_MOUNT_PATH");
}

TEST_CASE("a network policy needs its configuration", "[runtime][docker]") {
    SandboxSpec spec;
    DockerOptions options;
    CHECK(check_network_policy(spec, options));
    spec.network_policy.emplace();
    CHECK(check_network_policy(spec, options));
    options.network_mode = "host";
    CHECK(wire_of(check_network_policy(spec, options)) == "SANDBOX::INVALID_PARAMETER");
    options.network_mode = "bridge";
    options.secure_runtime = "gvisor";
    CHECK_FALSE(check_network_policy(spec, options));
    options.secure_runtime.clear();
    spec.credential_proxy = true;
    // Our own sidecar filters packets unless it is told not to.
    CHECK(check_network_policy(spec, options));
    options.egress.mode = "dns";
    CHECK_FALSE(check_network_policy(spec, options));
    options.egress.mode.clear();
    options.egress.image = "egress:1";
    CHECK_FALSE(check_network_policy(spec, options));
    options.egress.mode = "dns+nft";
    CHECK(check_network_policy(spec, options));
    spec.egress_env = {{"OPENSANDBOX_EGRESS_MITMPROXY_SSL_INSECURE", "true"}};
    CHECK_FALSE(check_network_policy(spec, options));
    spec.credential_proxy = false;
    CHECK(check_network_policy(spec, options));
    spec.egress_env.clear();
    options.egress.upstream_proxy_url = "http://proxy:3128";
    CHECK_FALSE(check_network_policy(spec, options));
    spec.egress_env = {{"OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT", "1"}};
    CHECK(check_network_policy(spec, options));
    CHECK(is_transparent(spec));
}

TEST_CASE("our own sidecar is told which connections to intercept", "[runtime][docker]") {
    SandboxSpec spec;
    spec.network_policy.emplace();
    DockerOptions options;
    CHECK(interception_mode(spec).empty());
    spec.credential_proxy = true;
    CHECK(interception_mode(spec) == "all");
    spec.credential_bound = true;
    CHECK(interception_mode(spec) == "credential-bound");
    CHECK(check_network_policy(spec, options));
    const auto text = json::serialize(sidecar_body(spec, options, SidecarPlan()));
    CHECK(text.find("OPENSANDBOX_EGRESS_MITMPROXY_INTERCEPTION_MODE=credential-bound") !=
          std::string::npos);
    options.egress.image = "egress:1";
    options.egress.mode = "dns+nft";
    const auto refused = check_network_policy(spec, options);
    CHECK(wire_of(refused) == "SANDBOX::INVALID_PARAMETER");
    CHECK(refused.error().message().find("interceptionMode") != std::string::npos);
}

TEST_CASE("a sidecar is told the policy and guards the ports", "[runtime][docker]") {
    SandboxSpec spec;
    spec.id = "x";
    spec.network_policy.emplace();
    spec.network_policy->egress.emplace_back("allow", "example.com");
    spec.egress_env = {{"OPENSANDBOX_EGRESS_LOG_LEVEL", "debug"}};
    DockerOptions options;
    options.egress.image = "egress:1";
    SidecarPlan plan;
    plan.server_id = "server-1";
    plan.image = "egress:1";
    plan.token = "token";
    plan.agent_port = 1;
    plan.http_port = 2;
    plan.egress_port = 3;
    auto body = sidecar_body(spec, options, plan);
    CHECK(body.at("Image").as_string() == "egress:1");
    std::set<std::string> env;
    for (const auto& item : body.at("Env").as_array())
        env.emplace(item.as_string());
    CHECK(env.contains("OPENSANDBOX_EGRESS_RULES=" + model::to_json(*spec.network_policy)));
    CHECK(env.contains("OPENSANDBOX_EGRESS_MODE=dns"));
    CHECK(env.contains("OPENSANDBOX_EGRESS_TOKEN=token"));
    CHECK(env.contains("OPENSANDBOX_EGRESS_SANDBOX_ID=x"));
    CHECK(env.contains("OPENSANDBOX_EGRESS_LOG_LEVEL=debug"));
    CHECK_FALSE(env.contains("OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT=true"));
    const auto& labels = body.at("Labels").as_object();
    CHECK(labels.at("opensandbox.io/egress-sidecar-for").as_string() == "x");
    CHECK_FALSE(labels.contains("opensandbox.io/id"));
    const auto& host = body.at("HostConfig").as_object();
    CHECK(host.at("NetworkMode").as_string() == "bridge");
    CHECK(host.at("CapAdd").as_array().at(0).as_string() == "NET_ADMIN");
    for (const char* port : {"44772/tcp", "8080/tcp", "18080/tcp"})
        CHECK(host.at("PortBindings").as_object().contains(port));
    CHECK(host.at("Sysctls").as_object().size() == 3);
    plan.sysctls = false;
    body = sidecar_body(spec, options, plan);
    CHECK_FALSE(body.at("HostConfig").as_object().contains("Sysctls"));
}
