#include "runtime/docker/container_spec.hpp"
#include "runtime/docker/names.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::docker;

namespace {

SandboxSpec spec_of() {
    SandboxSpec spec;
    spec.id = "0d4b3c52-9e1f-4f1e-8f5e-0c6b7a8d9e0f";
    spec.image = "python:3.12";
    spec.entrypoint = {"tail", "-f", "/dev/null"};
    spec.env = {{"A", "1"}, {"SHARED", "request"}};
    spec.agent_token = "secret";
    return spec;
}

ContainerPlan plan_of() {
    ContainerPlan plan;
    plan.image = "python:3.12";
    plan.agent_volume = "opensandbox-agent-abc";
    plan.network_mode = "bridge";
    plan.facts.server_id = "server-1";
    plan.facts.agent_port = 41000;
    plan.facts.http_port = 41001;
    return plan;
}

const json::object& host_of(const json::object& body) {
    return body.at("HostConfig").as_object();
}

std::vector<std::string> texts(const json::value& array) {
    std::vector<std::string> out;
    for (const auto& item : array.as_array())
        out.emplace_back(item.as_string());
    return out;
}

bool holds(const std::vector<std::string>& list, const std::string& item) {
    return std::ranges::find(list, item) != list.end();
}

}  // namespace

TEST_CASE("a container runs the agent, which runs the request's entrypoint", "[runtime][docker]") {
    auto body = container_body(spec_of(), DockerOptions(), plan_of());
    CHECK(body.at("Image").as_string() == "python:3.12");
    CHECK(texts(body.at("Entrypoint")) ==
          std::vector<std::string>{"/opt/opensandbox/bin/bootstrap.sh"});
    CHECK(texts(body.at("Cmd")) == std::vector<std::string>{"tail", "-f", "/dev/null"});
    CHECK_FALSE(body.contains("User"));
    CHECK_FALSE(body.contains("WorkingDir"));
    const auto& mounts = host_of(body).at("Mounts").as_array();
    REQUIRE(mounts.size() == 1);
    const auto& mount = mounts[0].as_object();
    CHECK(mount.at("Type").as_string() == "volume");
    CHECK(mount.at("Source").as_string() == "opensandbox-agent-abc");
    CHECK(mount.at("Target").as_string() == "/opt/opensandbox/bin");
    CHECK(mount.at("ReadOnly").as_bool());
}

TEST_CASE("a container's environment is the server's under the request's", "[runtime][docker]") {
    DockerOptions options;
    options.sandbox_env = {{"SHARED", "server"}, {"ONLY_SERVER", "x"}};
    SandboxSpec spec = spec_of();
    spec.limits.memory_bytes = 64 << 20;
    auto env = texts(container_body(spec, options, plan_of()).at("Env"));
    CHECK(holds(env, "A=1"));
    CHECK(holds(env, "SHARED=request"));
    CHECK(holds(env, "ONLY_SERVER=x"));
    CHECK(holds(env, "OPENSANDBOX_ID=" + spec.id));
    CHECK(holds(env, "EXECD_ACCESS_TOKEN=secret"));
    CHECK(holds(env, "OPENSANDBOX_MEMORY_LIMIT_BYTES=67108864"));
    CHECK_FALSE(holds(env, "EXECD_INIT=1"));
    CHECK_FALSE(holds(env, "OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT=true"));

    options.execd_run_as_init = true;
    ContainerPlan plan = plan_of();
    plan.foreign_agent = true;
    plan.transparent_egress = true;
    env = texts(container_body(spec, options, plan).at("Env"));
    CHECK(holds(env, "EXECD_INIT=1"));
    CHECK(holds(env, "EXECD=/opt/opensandbox/bin/execd"));
    CHECK(holds(env, "OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT=true"));
}

TEST_CASE("ports are published in bridge mode only", "[runtime][docker]") {
    DockerOptions options;
    options.publish_host = "127.0.0.1";
    auto body = container_body(spec_of(), options, plan_of());
    const auto& bindings = host_of(body).at("PortBindings").as_object();
    const auto& agent = bindings.at("44772/tcp").as_array().at(0).as_object();
    CHECK(agent.at("HostIp").as_string() == "127.0.0.1");
    CHECK(agent.at("HostPort").as_string() == "41000");
    CHECK(bindings.at("8080/tcp").as_array().at(0).as_object().at("HostPort").as_string() ==
          "41001");
    CHECK(body.at("ExposedPorts").as_object().contains("44772/tcp"));
    CHECK(host_of(body).at("NetworkMode").as_string() == "bridge");

    ContainerPlan host = plan_of();
    host.network_mode = "host";
    CHECK_FALSE(host_of(container_body(spec_of(), options, host)).contains("PortBindings"));

    ContainerPlan guarded = plan_of();
    guarded.network_mode = "container:abc";
    guarded.runtime_volume = true;
    body = container_body(spec_of(), options, guarded);
    CHECK_FALSE(host_of(body).contains("PortBindings"));
    CHECK_FALSE(body.contains("ExposedPorts"));
    const auto& mounts = host_of(body).at("Mounts").as_array();
    REQUIRE(mounts.size() == 2);
    CHECK(mounts[0].as_object().at("Target").as_string() == "/opt/opensandbox");
    CHECK_FALSE(mounts[0].as_object().at("ReadOnly").as_bool());
}

TEST_CASE("hardening is on unless it is configured otherwise", "[runtime][docker]") {
    DockerOptions options;
    auto body = container_body(spec_of(), options, plan_of());
    const auto& host = host_of(body);
    CHECK(texts(host.at("SecurityOpt")) == std::vector<std::string>{"no-new-privileges=true"});
    CHECK(texts(host.at("CapDrop")) == options.drop_capabilities);
    CHECK_FALSE(host.contains("CapAdd"));
    CHECK(host.at("PidsLimit").to_number<int>() == 4096);
    CHECK(json::serialize(host.at("Ulimits")) == R"([{"Name":"core","Soft":1,"Hard":1}])");
    CHECK_FALSE(host.contains("Runtime"));
    CHECK_FALSE(host.contains("RestartPolicy"));
    CHECK_FALSE(host.contains("AutoRemove"));
    CHECK_FALSE(host.contains("Binds"));

    options.apparmor_profile = "docker-default";
    options.seccomp_profile = "{}";
    options.oci_runtime = "runsc";
    options.pids_limit = 100;
    options.drop_capabilities = {"MKNOD"};
    options.sandbox_binds = {"/etc/hosts:/etc/hosts:ro"};
    ContainerPlan plan = plan_of();
    plan.binds = {"claim:/data:rw"};
    plan.network_mode = "container:abc";
    auto configured = container_body(spec_of(), options, plan);
    const auto& other = host_of(configured);
    CHECK(texts(other.at("SecurityOpt")) == std::vector<std::string>{"no-new-privileges=true",
                                                                     "apparmor=docker-default",
                                                                     "seccomp={}"});
    CHECK(texts(other.at("CapDrop")) == std::vector<std::string>{"MKNOD", "NET_ADMIN", "NET_RAW"});
    CHECK(other.at("Runtime").as_string() == "runsc");
    CHECK(other.at("PidsLimit").to_number<int>() == 100);
    CHECK(texts(other.at("Binds")) ==
          std::vector<std::string>{"/etc/hosts:/etc/hosts:ro", "claim:/data:rw"});
}

TEST_CASE("limits become the engine's units", "[runtime][docker]") {
    SandboxSpec spec = spec_of();
    spec.limits.cpu_cores = 0.5;
    spec.limits.memory_bytes = 512ULL << 20;
    spec.limits.gpus = -1;
    spec.limits.pids = 50;
    auto body = container_body(spec, DockerOptions(), plan_of());
    const auto& host = host_of(body);
    CHECK(host.at("NanoCpus").to_number<std::int64_t>() == 500'000'000);
    CHECK(host.at("Memory").to_number<std::int64_t>() == 536'870'912);
    CHECK(host.at("PidsLimit").to_number<int>() == 50);
    const auto& gpu = host.at("DeviceRequests").as_array().at(0).as_object();
    CHECK(gpu.at("Count").to_number<int>() == -1);
    CHECK(gpu.at("Capabilities").as_array().at(0).as_array().at(0).as_string() == "gpu");

    auto plain = container_body(spec_of(), DockerOptions(), plan_of());
    for (const char* absent : {"NanoCpus", "Memory", "DeviceRequests", "Tmpfs", "MaskedPaths"})
        CHECK_FALSE(host_of(plain).contains(absent));
}

TEST_CASE("isolation inside a sandbox takes what it needs", "[runtime][docker]") {
    SandboxSpec spec = spec_of();
    spec.isolation = true;
    DockerOptions options;
    options.apparmor_profile = "docker-default";
    auto body = container_body(spec, options, plan_of());
    const auto& host = host_of(body);
    CHECK(texts(host.at("CapAdd")) == std::vector<std::string>{"SYS_ADMIN"});
    CHECK_FALSE(holds(texts(host.at("CapDrop")), "SYS_ADMIN"));
    auto security = texts(host.at("SecurityOpt"));
    CHECK(holds(security, "apparmor=unconfined"));
    CHECK(holds(security, "seccomp=unconfined"));
    CHECK_FALSE(holds(security, "apparmor=docker-default"));
    CHECK(host.at("MaskedPaths").as_array().empty());
    CHECK(host.at("ReadonlyPaths").as_array().empty());
    CHECK(host.at("Tmpfs").as_object().contains("/var/lib/execd/isolation"));
}
