#include "base/digest.hpp"
#include "runtime/docker/container_spec.hpp"
#include "runtime/docker/sidecar_image.hpp"
#include "runtime/docker/sidecar_spec.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::docker;

namespace {

/// What is said against a policy of one rule, given as model::to_json() has it; "" when nothing is.
std::string refusal_of(std::string target, std::vector<std::int64_t> ports,
                       const DockerOptions& options) {
    SandboxSpec spec;
    spec.network_policy.emplace();
    spec.network_policy->egress.emplace_back("allow", std::move(target));
    spec.network_policy->egress.back().ports = std::move(ports);
    const Status checked = check_network_policy(spec, options);
    return checked ? "" : checked.error().message();
}

/// The files and folders of a tar by name; folders have no content.
std::map<std::string, std::string> entries_of(std::string_view tar) {
    constexpr std::size_t kBlock = 512;
    std::map<std::string, std::string> entries;
    while (tar.size() >= kBlock && tar.front() != '\0') {
        std::string name(tar.substr(0, tar.find('\0')));
        std::size_t size = std::stoul(std::string(tar.substr(124, 11)), nullptr, 8);
        entries[name] = std::string(tar.substr(kBlock, size));
        tar.remove_prefix(kBlock + (size + kBlock - 1) / kBlock * kBlock);
    }
    return entries;
}

SidecarImageParts parts_of() {
    SidecarImageParts parts;
    parts.program = std::string(1000, 'p');
    parts.roots = "-----BEGIN CERTIFICATE-----";
    parts.architecture = "amd64";
    parts.reference = "opensandbox-egress:0123";
    parts.version = "0123";
    return parts;
}

std::vector<std::string> texts(const json::value& list) {
    std::vector<std::string> all;
    for (const json::value& item : list.as_array())
        all.emplace_back(item.as_string());
    return all;
}

bool holds(const std::vector<std::string>& list, const std::string& text) {
    return std::ranges::find(list, text) != list.end();
}

json::object sidecar_host(const DockerOptions& options) {
    SandboxSpec spec;
    spec.id = "x";
    spec.network_policy.emplace();
    SidecarPlan plan;
    plan.image = "any:1";
    auto body = sidecar_body(spec, options, plan);
    CHECK(body.at("Image").as_string() == "any:1");
    json::object host = body.at("HostConfig").as_object();
    host["Env"] = body.at("Env");
    return host;
}

}  // namespace

TEST_CASE("the sidecar's own image holds the program and the roots", "[runtime][docker]") {
    auto archive = entries_of(sidecar_image_archive(parts_of()));
    auto manifest = json::parse(archive.at("manifest.json"));
    REQUIRE(manifest);
    const json::object& image = manifest->as_array().at(0).as_object();
    CHECK(texts(image.at("RepoTags")) == std::vector<std::string>{"opensandbox-egress:0123"});
    const std::string& layer =
        archive.at(std::string(image.at("Layers").as_array()[0].as_string()));
    auto config = json::parse(archive.at(std::string(image.at("Config").as_string())));
    REQUIRE(config);
    CHECK(config->at("architecture").as_string() == "amd64");
    CHECK(texts(config->at("rootfs").at("diff_ids")) ==
          std::vector<std::string>{"sha256:" + sha256_hex(layer)});
    CHECK(texts(config->at("config").at("Entrypoint")) ==
          std::vector<std::string>{"/opensandbox", "egress", "--supervised"});
    auto files = entries_of(layer);
    CHECK(files.at("opensandbox") == parts_of().program);
    CHECK(files.at("etc/ssl/certs/ca-certificates.crt") == parts_of().roots);
    CHECK(files.contains("var/lib/mitmproxy"));
}

TEST_CASE("the same program makes the same image of the sidecar", "[runtime][docker]") {
    CHECK(sidecar_image_archive(parts_of()) == sidecar_image_archive(parts_of()));
    auto other = parts_of();
    other.program += 'x';
    CHECK(sidecar_image_archive(parts_of()) != sidecar_image_archive(other));
}

TEST_CASE("our own sidecar filters packets and has one capability", "[runtime][docker]") {
    DockerOptions options;
    auto host = sidecar_host(options);
    CHECK(holds(texts(host.at("Env")), "OPENSANDBOX_EGRESS_MODE=dns+nft"));
    CHECK(texts(host.at("CapAdd")) == std::vector<std::string>{"NET_ADMIN"});
    CHECK(texts(host.at("CapDrop")) == std::vector<std::string>{"ALL"});
    CHECK(holds(texts(host.at("Env")), "OPENSANDBOX_EGRESS_POLICY_FILE=/var/egress/policy.json"));

    options.egress.image = "published:1";
    host = sidecar_host(options);
    CHECK(holds(texts(host.at("Env")), "OPENSANDBOX_EGRESS_MODE=dns"));
    CHECK_FALSE(host.contains("CapDrop"));

    options.egress.mode = "dns+nft";
    CHECK(holds(texts(sidecar_host(options).at("Env")), "OPENSANDBOX_EGRESS_MODE=dns+nft"));
    options.egress.image.clear();
    options.egress.mode = "dns";
    CHECK(holds(texts(sidecar_host(options).at("Env")), "OPENSANDBOX_EGRESS_MODE=dns"));
}

TEST_CASE("the operator's settings of the sidecar hold unless a request has its own",
          "[runtime][docker]") {
    SandboxSpec spec;
    spec.id = "x";
    spec.network_policy.emplace();
    spec.egress_env = {{"OPENSANDBOX_EGRESS_LOG_LEVEL", "debug"}};
    DockerOptions options;
    options.egress.environment = {{"OPENSANDBOX_EGRESS_LOG_LEVEL", "error"},
                                  {"OPENSANDBOX_EGRESS_DNS_UPSTREAM", "192.0.2.53"}};
    auto env = texts(sidecar_body(spec, options, SidecarPlan()).at("Env"));
    CHECK(holds(env, "OPENSANDBOX_EGRESS_DNS_UPSTREAM=192.0.2.53"));
    CHECK(holds(env, "OPENSANDBOX_EGRESS_LOG_LEVEL=debug"));
    CHECK_FALSE(holds(env, "OPENSANDBOX_EGRESS_LOG_LEVEL=error"));
}

TEST_CASE("a policy file is not where the sandbox writes", "[runtime][docker]") {
    SandboxSpec spec;
    DockerOptions options;
    spec.network_policy.emplace();
    auto allowed = [&](const std::string& path) {
        spec.egress_env = {{"OPENSANDBOX_EGRESS_POLICY_FILE", path}};
        return check_network_policy(spec, options).has_value();
    };
    CHECK(allowed("/var/policy.json"));
    CHECK(allowed("/opt/opensandbox-policy.json"));
    CHECK_FALSE(allowed("/opt/opensandbox/policy.json"));
    CHECK_FALSE(allowed("/var/../opt//opensandbox/policy.json"));
}

TEST_CASE("behind a sidecar nobody can forge its mark or undo its rules", "[runtime][docker]") {
    DockerOptions options;
    SandboxSpec spec;
    ContainerPlan plan;
    auto dropped = [&] {
        return texts(container_body(spec, options, plan).at("HostConfig").at("CapDrop"));
    };
    options.drop_capabilities = {"MKNOD"};
    CHECK(dropped() == std::vector<std::string>{"MKNOD"});
    plan.network_mode = "container:x";
    CHECK(dropped() == std::vector<std::string>{"MKNOD", "NET_ADMIN", "NET_RAW"});
    options.drop_capabilities = {"CAP_NET_RAW", "NET_ADMIN"};
    CHECK(dropped() == std::vector<std::string>{"CAP_NET_RAW", "NET_ADMIN"});
    spec.isolation = true;
    options.drop_capabilities.clear();
    CHECK(dropped() == std::vector<std::string>{"NET_ADMIN", "NET_RAW"});
}

TEST_CASE("a policy that a sidecar would not enforce is refused before anything is made") {
    DockerOptions own;
    own.network_mode = "bridge";
    CHECK(refusal_of("10.0.0.0/8", {443}, own) == "");
    CHECK(refusal_of("", {25}, own) == "");
    CHECK(refusal_of("http://x/", {}, own).starts_with("networkPolicy.egress[0].target: "));
    CHECK(refusal_of("a.example", {443}, own).starts_with("networkPolicy.egress[0].ports: "));
    DockerOptions names_only = own;
    names_only.egress.mode = "dns";
    CHECK(refusal_of("10.0.0.0/8", {443}, names_only).find("egress.mode") != std::string::npos);
    CHECK(refusal_of("10.0.0.0/8", {}, names_only) == "");
    DockerOptions foreign = own;
    foreign.egress.image = "other/egress:1";
    foreign.egress.mode = "dns+nft";
    CHECK(refusal_of("10.0.0.0/8", {443}, foreign).find("egress.image") != std::string::npos);
    CHECK(refusal_of("10.0.0.0/8", {}, foreign) == "");
}

TEST_CASE("an image's digest is known when its registries name one") {
    const std::string one = "sha256:" + std::string(64, 'a');
    const std::string two = "sha256:" + std::string(64, 'b');
    CHECK(manifest_digest({}) == "");
    CHECK(manifest_digest({"r/python@" + one}) == one);
    CHECK(manifest_digest({"r/python@" + one, "s/python@" + one}) == one);
    CHECK(manifest_digest({"r/python@" + one, "s/python@" + two}) == "");
    CHECK(manifest_digest({"r/python@sha256:short"}) == "");
}
