#include "runtime/docker/labels.hpp"
#include "runtime/docker/names.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace opensandbox;
using namespace opensandbox::runtime;
using namespace opensandbox::runtime::docker;

namespace {

std::string get(const StringMap& labels, std::string_view key) {
    auto at = std::ranges::find(labels, key, &StringMap::value_type::first);
    return at == labels.end() ? "absent" : at->second;
}

SandboxSpec spec_of() {
    SandboxSpec spec;
    spec.id = "0d4b3c52-9e1f-4f1e-8f5e-0c6b7a8d9e0f";
    spec.metadata = {{"team", "a"}, {"example.com/x", ""}};
    spec.extensions = {{"opensandbox.extensions.color", "red"}};
    spec.renew_seconds = 600;
    spec.expires_at = parse_rfc3339("2026-01-02T03:04:05.123456Z");
    spec.platform = model::Platform("linux", "arm64");
    spec.snapshot = SnapshotReference("snap", "opensandbox-snapshots:snap");
    return spec;
}

}  // namespace

TEST_CASE("labels carry a sandbox there and back", "[runtime][docker]") {
    SandboxSpec spec = spec_of();
    ContainerFacts facts;
    facts.server_id = "server-1";
    facts.agent_port = 41000;
    facts.http_port = 41001;
    facts.egress_token = "token";
    facts.egress_port = 41002;
    facts.managed_volumes = {"a", "b\"c"};
    facts.bucket_mounts = {"/mnt/ossfs/bucket"};
    auto labels = make_labels(spec, facts);
    CHECK(get(labels, "opensandbox.io/id") == spec.id);
    CHECK(get(labels, "opensandbox.io/expires-at") == "2026-01-02T03:04:05.123456+00:00");
    CHECK(get(labels, "opensandbox.io/manual-cleanup") == "absent");
    CHECK(get(labels, "opensandbox.io/embedding-proxy-port") == "41000");
    CHECK(get(labels, "opensandbox.io/http-port") == "41001");
    CHECK(get(labels, "opensandbox.io/extensions.color") == "red");
    CHECK(get(labels, "opensandbox.io/access-renew-extend-seconds") == "600");
    CHECK(get(labels, "opensandbox.io/snapshot-id") == "snap");
    CHECK(get(labels, "opensandbox.io/volume-managed-by") == R"(["a","b\"c"])");
    CHECK(get(labels, "team") == "a");

    LabelledSandbox read = read_labels(labels);
    CHECK(read.id == spec.id);
    CHECK(read.server == "server-1");
    CHECK(read.expires_at == spec.expires_at);
    CHECK_FALSE(read.manual_cleanup);
    REQUIRE(read.platform);
    CHECK(read.platform->arch == "arm64");
    CHECK(read.snapshot_id == "snap");
    CHECK(read.renew_seconds == 600);
    CHECK(read.extensions == spec.extensions);
    CHECK(read.metadata == spec.metadata);
    CHECK(read.agent_port == 41000);
    CHECK(read.http_port == 41001);
    CHECK(read.egress_token == "token");
    CHECK(read.egress_port == 41002);
    CHECK(read.managed_volumes == facts.managed_volumes);
    CHECK(read.bucket_mounts == facts.bucket_mounts);
}

TEST_CASE("a sandbox without expiry is labelled for removal by hand", "[runtime][docker]") {
    SandboxSpec spec;
    spec.id = "x";
    auto labels = make_labels(spec, ContainerFacts());
    CHECK(get(labels, "opensandbox.io/manual-cleanup") == "true");
    CHECK(get(labels, "opensandbox.io/expires-at") == "absent");
    CHECK(read_labels(labels).manual_cleanup);
    CHECK(label_time(*parse_rfc3339("2026-01-02T03:04:05Z")) == "2026-01-02T03:04:05.000000+00:00");
}

TEST_CASE("what a snapshot's image says of its source counts for nothing", "[runtime][docker]") {
    SandboxSpec spec;
    spec.id = "new";
    ContainerFacts facts;
    facts.server_id = "server-1";
    facts.image_labels = {{"opensandbox.io/id", "old"},
                          {"opensandbox.io/expires-at", "2020-01-01T00:00:00+00:00"},
                          {"opensandbox.io/egress-auth-token", "old-token"},
                          {"maintainer", "somebody"}};
    auto labels = make_labels(spec, facts);
    CHECK(get(labels, "opensandbox.io/id") == "new");
    CHECK(get(labels, "opensandbox.io/expires-at").empty());
    CHECK(get(labels, "opensandbox.io/egress-auth-token").empty());
    CHECK(get(labels, "maintainer") == "absent");
    LabelledSandbox read = read_labels(labels);
    CHECK_FALSE(read.expires_at);
    CHECK(read.manual_cleanup);
    CHECK(read.egress_token.empty());
}

TEST_CASE("labels that make no sense count as absent", "[runtime][docker]") {
    LabelledSandbox read = read_labels({{"opensandbox.io/id", "x"},
                                        {"opensandbox.io/expires-at", "tomorrow"},
                                        {"opensandbox.io/embedding-proxy-port", "99999"},
                                        {"opensandbox.io/access-renew-extend-seconds", "1x"},
                                        {"opensandbox.io/volume-managed-by", "{\"a\":1}"},
                                        {"opensandbox.io/platform-os", "linux"},
                                        {"com.docker.compose.project", "y"},
                                        {"org.opencontainers.image.title", "z"}});
    CHECK(read.id == "x");
    CHECK_FALSE(read.expires_at);
    CHECK(read.agent_port == 0);
    CHECK_FALSE(read.renew_seconds);
    CHECK(read.managed_volumes.empty());
    CHECK_FALSE(read.platform);
    CHECK(read.metadata.empty());
}

TEST_CASE("the sidecar's token is not shown", "[runtime][docker]") {
    auto shown = without_secrets({{"opensandbox.io/egress-auth-token", "t"}, {"a", "b"}});
    CHECK(get(shown, "opensandbox.io/egress-auth-token") == "***");
    CHECK(get(shown, "a") == "b");
}
