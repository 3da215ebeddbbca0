#include "lifecycle/admission.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::lifecycle;
using model::CreateRequest;

namespace {

const Timestamp kNow = *parse_rfc3339("2026-01-01T00:00:00Z");

CreateRequest valid() {
    CreateRequest request;
    request.image = "host";
    request.entrypoint = {"sleep", "1"};
    return request;
}

AdmissionRules able() {
    AdmissionRules rules;
    rules.error_prefix = "DOCKER";
    rules.arch = "amd64";
    rules.capabilities.snapshots = true;
    rules.capabilities.hooks = true;
    rules.capabilities.isolation = true;
    rules.capabilities.network_policy = true;
    rules.capabilities.credential_proxy = true;
    rules.capabilities.host_volumes = true;
    rules.capabilities.claim_volumes = true;
    rules.capabilities.bucket_volumes = true;
    rules.capabilities.gpus = true;
    rules.capabilities.foreign_platforms = true;
    return rules;
}

Result<store::SnapshotRecord> known_snapshot(const std::string& id) {
    if (id != "known") {
        return Error(ErrorCode::not_found, "SNAPSHOT::NOT_FOUND", "Snapshot " + id + " not found.");
    }
    store::SnapshotRecord record;
    record.snapshot.id = id;
    record.reference = "layer";
    record.base_image = "base";
    return record;
}

}  // namespace

TEST_CASE("admission: what the runtime can do reaches its spec") {
    auto request = valid();
    request.image_auth.emplace("user", "password");
    request.hooks.emplace();
    request.hooks->pre_start.emplace();
    request.hooks->pre_start->command = {"true"};
    request.network_policy.emplace();
    request.network_policy->default_action = "deny";
    request.credential_proxy = true;
    request.platform = model::Platform("linux", "arm64");
    request.resource_limits = {{"gpu", "all"}, {"cpu", "1.5"}, {"memory", "8Mi"}};
    request.resource_requests = {{"cpu", "1"}};
    request.metadata = model::StringMap{{"a", "b"}};
    request.extensions = {{"bootstrap.execd.isolation", "enable"},
                          {"access.renew.extend.seconds", "300"},
                          {"opensandbox.extensions.x", "y"}};
    request.timeout_seconds = 60;
    model::Volume volume;
    volume.name = "data";
    volume.mount_path = "/data";
    volume.backend = model::ClaimVolume();
    request.volumes = {volume};
    auto admitted = admit(request, able(), kNow);
    REQUIRE(admitted);
    const auto& spec = admitted->spec;
    CHECK(spec.image_auth->password == "password");
    CHECK(spec.hooks->pre_start->command.front() == "true");
    CHECK(spec.network_policy->default_action == "deny");
    CHECK(spec.credential_proxy);
    CHECK(spec.isolation);
    CHECK(spec.platform->arch == "arm64");
    CHECK(spec.limits.gpus == -1);
    CHECK(spec.resource_requests == request.resource_requests);
    CHECK(spec.metadata == *request.metadata);
    CHECK(spec.extensions == model::StringMap{{"opensandbox.extensions.x", "y"}});
    CHECK(spec.renew_seconds == 300);
    CHECK(spec.expires_at == kNow + std::chrono::seconds(60));
    CHECK(spec.volumes.size() == 1);
    CHECK(admitted->record.cpu_millicores == 1500);
    CHECK(admitted->record.memory_bytes == 8 << 20);
    CHECK(admitted->record.base_image == "host");
    CHECK(admitted->warnings.empty());
}

TEST_CASE("admission: a snapshot replaces the image and brings a default entrypoint") {
    auto request = valid();
    request.image.reset();
    request.entrypoint.clear();
    request.snapshot_id = "known";
    auto admitted = admit(request, able(), kNow, known_snapshot);
    REQUIRE(admitted);
    CHECK(admitted->spec.snapshot->id == "known");
    CHECK(admitted->spec.snapshot->data == "layer");
    CHECK(admitted->spec.image.empty());
    CHECK(admitted->spec.entrypoint == std::vector<std::string>{"tail", "-f", "/dev/null"});
    CHECK(admitted->record.sandbox.snapshot_id == "known");
    CHECK(admitted->record.sandbox.image_uri.empty());
    CHECK(admitted->record.base_image == "base");
    request.snapshot_id = "other";
    REQUIRE(admit(request, able(), kNow, known_snapshot).error().wire() == "SNAPSHOT::NOT_FOUND");
    // It is looked for before anything else is judged.
    request.hooks.emplace();
    auto lacks_hooks = able();
    lacks_hooks.capabilities.hooks = false;
    REQUIRE(admit(request, lacks_hooks, kNow, known_snapshot).error().wire() ==
            "SNAPSHOT::NOT_FOUND");
}

TEST_CASE("admission: settings of the sidecar go to it alone, the allowed ones") {
    auto request = valid();
    request.env = {{"A", "1"},
                   {"OPENSANDBOX_EGRESS_LOG_LEVEL", "debug"},
                   {"OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT", "true"}};
    auto without = admit(request, able(), kNow);
    REQUIRE(without);
    CHECK(without->spec.egress_env.empty());
    CHECK(without->spec.env.size() == 2);
    CHECK(without->warnings.size() == 1);

    request.network_policy.emplace();
    auto with = admit(request, able(), kNow);
    REQUIRE(with);
    CHECK(with->spec.egress_env ==
          model::StringMap{{"OPENSANDBOX_EGRESS_LOG_LEVEL", "debug"},
                           {"OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT", "true"}});
    CHECK(with->spec.env.size() == 3);
    CHECK(with->warnings.empty());

    request.env = {{"OPENSANDBOX_EGRESS_TOKEN", "mine"}};
    auto refused = admit(request, able(), kNow);
    REQUIRE(refused.error().wire() == "SANDBOX::INVALID_PARAMETER");
    CHECK_THAT(refused.error().message(), Catch::Contains("OPENSANDBOX_EGRESS_TOKEN"));

    request.env = {{"OPENSANDBOX_EGRESS_MITMPROXY_SSL_INSECURE", "true"}};
    REQUIRE(admit(request, able(), kNow));
    request.credential_proxy = true;
    REQUIRE(admit(request, able(), kNow).error().wire() == "SANDBOX::INVALID_PARAMETER");
}

TEST_CASE("admission: a credential proxy that denies nothing is let in with a warning") {
    auto request = valid();
    request.network_policy.emplace();
    request.credential_proxy = true;
    auto admitted = admit(request, able(), kNow);
    REQUIRE(admitted);
    REQUIRE(admitted->warnings.size() == 1);
    auto lacks = able();
    lacks.capabilities.credential_proxy = false;
    auto refused = admit(request, lacks, kNow);
    CHECK_THAT(refused.error().message(), Catch::Contains("credentialProxy"));
    CHECK_THAT(refused.error().message(), Catch::Contains("docker"));
}

TEST_CASE("admission: each kind of volume needs its capability, each path its form") {
    auto refusal = [](model::Volume volume, AdmissionRules rules) {
        auto request = valid();
        request.volumes = {std::move(volume)};
        auto admitted = admit(request, rules, kNow);
        return admitted ? std::string() : admitted.error().wire();
    };
    model::Volume volume;
    volume.name = "data";
    volume.mount_path = "/data";
    auto rules = able();
    CHECK(refusal(volume, rules).empty());
    rules.capabilities.host_volumes = false;
    CHECK(refusal(volume, rules) == "SANDBOX::INVALID_PARAMETER");
    volume.backend = model::ClaimVolume();
    CHECK(refusal(volume, rules).empty());
    rules.capabilities.claim_volumes = false;
    CHECK(refusal(volume, rules) == "SANDBOX::INVALID_PARAMETER");
    volume.backend = model::BucketVolume();
    CHECK(refusal(volume, rules).empty());
    rules.capabilities.bucket_volumes = false;
    CHECK(refusal(volume, rules) == "SANDBOX::INVALID_PARAMETER");
    for (const char* path : {"/", "//", "/.", "/a/../b", "/.."}) {
        INFO(path);
        volume.mount_path = path;
        CHECK(refusal(volume, able()) == "VOLUME::INVALID_MOUNT_PATH");
    }
}
