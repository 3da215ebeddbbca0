#include "lifecycle/admission.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::lifecycle;
using model::CreateRequest;

namespace {

CreateRequest valid() {
    CreateRequest request;
    request.image = "host";
    request.entrypoint = {"sleep", "1"};
    request.timeout_seconds = 60;
    return request;
}

AdmissionRules rules() {
    AdmissionRules rules;
    rules.arch = "amd64";
    return rules;
}

const Timestamp kNow = *parse_rfc3339("2026-01-01T00:00:00Z");

struct Refused {
    const char* what;
    void (*change)(CreateRequest&);
    const char* wire;
    ErrorCode code;
    const char* names;  ///< part of the message
};

}  // namespace

TEST_CASE("admission: a plain request becomes a spec and a pending row") {
    auto request = valid();
    request.env = {{"A", "1"}, {"OPENSANDBOX_EGRESS_LOG_LEVEL", "debug"}};
    request.resource_limits = {{"cpu", "500m"}, {"memory", "1Gi"}};
    request.metadata = model::StringMap{};
    request.extensions = {{"opensandbox.extensions.a", "b"},
                          {"access.renew.extend.seconds", "600"},
                          {"other", "ignored"}};
    auto admitted = admit(request, rules(), kNow);
    REQUIRE(admitted);
    const auto& spec = admitted->spec;
    const auto& sandbox = admitted->record.sandbox;
    REQUIRE(spec.limits.cpu_cores == 0.5);
    REQUIRE(spec.limits.memory_bytes == 1ULL << 30);
    REQUIRE(spec.env == model::StringMap{{"A", "1"}, {"OPENSANDBOX_ID", spec.id}});
    REQUIRE(spec.agent_token.size() == 32);
    REQUIRE(sandbox.id == spec.id);
    REQUIRE(sandbox.status.state == model::SandboxState::pending);
    REQUIRE(sandbox.expires_at == kNow + std::chrono::seconds(60));
    REQUIRE(sandbox.extensions == model::StringMap{{"opensandbox.extensions.a", "b"}});
    REQUIRE(admitted->record.renew_seconds == 600);
}

TEST_CASE("admission: two requests never share an id or a token") {
    auto one = admit(valid(), rules(), kNow);
    auto two = admit(valid(), rules(), kNow);
    REQUIRE(one->spec.id != two->spec.id);
    REQUIRE(one->spec.agent_token != two->spec.agent_token);
}

TEST_CASE("admission: no timeout means no expiry") {
    auto request = valid();
    request.timeout_seconds.reset();
    REQUIRE_FALSE(admit(request, rules(), kNow)->record.sandbox.expires_at);
}

TEST_CASE("admission: what breaks a rule or cannot be done is refused by name") {
    constexpr auto kBad = ErrorCode::invalid_argument;
    constexpr const char* kParameter = "SANDBOX::INVALID_PARAMETER";
    const Refused table[] = {
        {"snapshot", [](CreateRequest& r) { r.snapshot_id = "x"; }, "SNAPSHOT::NOT_IMPLEMENTED",
         ErrorCode::unsupported, "snapshotId"},
        {"hooks", [](CreateRequest& r) { r.hooks.emplace(); }, kParameter, kBad, "lifecycle"},
        {"pool", [](CreateRequest& r) { r.extensions = {{"poolRef", "p"}}; },
         "SANDBOX::UNSUPPORTED_POOL_REF", kBad, "poolRef"},
        {"template", [](CreateRequest& r) { r.template_id = "t"; }, "NATIVE::INVALID_ENTRYPOINT",
         kBad, "templateId"},
        {"isolation",
         [](CreateRequest& r) { r.extensions = {{"bootstrap.execd.isolation", "enable"}}; },
         kParameter, kBad, "bootstrap.execd.isolation"},
        {"blank program", [](CreateRequest& r) { r.entrypoint = {" "}; },
         "NATIVE::INVALID_ENTRYPOINT", kBad, "entrypoint"},
        {"nul", [](CreateRequest& r) { r.entrypoint = {std::string("a\0b", 3)}; }, kParameter, kBad,
         "entrypoint"},
        {"long word", [](CreateRequest& r) { r.entrypoint = {std::string(131072, 'x')}; },
         kParameter, kBad, "entrypoint"},
        {"bad variable", [](CreateRequest& r) { r.env = {{"A=B", "1"}}; }, kParameter, kBad, "A=B"},
        {"empty variable", [](CreateRequest& r) { r.env = {{"", "1"}}; }, kParameter, kBad, "env"},
        {"label", [](CreateRequest& r) { r.metadata = model::StringMap{{"a b", "1"}}; },
         "SANDBOX::INVALID_METADATA_LABEL", kBad, "a b"},
        {"os", [](CreateRequest& r) { r.platform = model::Platform("beos", "amd64"); }, kParameter,
         kBad, "platform.os"},
        {"arch", [](CreateRequest& r) { r.platform = model::Platform("linux", "mips"); },
         kParameter, kBad, "platform.arch"},
        {"other arch", [](CreateRequest& r) { r.platform = model::Platform("linux", "arm64"); },
         kParameter, kBad, "linux/amd64 only"},
        {"windows", [](CreateRequest& r) { r.platform = model::Platform("windows", "amd64"); },
         kParameter, kBad, "platform"},
        {"overflow", [](CreateRequest& r) { r.timeout_seconds = INT64_MAX; }, kParameter, kBad,
         "timeout"},
        {"secure", [](CreateRequest& r) { r.secure_access = true; }, kParameter, kBad,
         "secureAccess"},
        {"policy", [](CreateRequest& r) { r.network_policy.emplace(); }, kParameter, kBad,
         "networkPolicy"},
        {"cpu", [](CreateRequest& r) { r.resource_limits = {{"cpu", "zz"}}; }, kParameter, kBad,
         "Invalid resourceLimits.cpu: 'zz'"},
        {"an extension of ours in another spelling",
         [](CreateRequest& r) { r.extensions = {{"opensandbox.io/netwrok", "none"}}; }, kParameter,
         kBad, "opensandbox.io/netwrok"},
        {"isolation in other words",
         [](CreateRequest& r) { r.extensions = {{"bootstrap.execd.isolation", "true"}}; },
         kParameter, kBad, "bootstrap.execd.isolation"},
        {"tiny cpu", [](CreateRequest& r) { r.resource_limits = {{"cpu", "1m"}}; }, kParameter,
         kBad, "resourceLimits.cpu"},
        {"huge cpu", [](CreateRequest& r) { r.resource_limits = {{"cpu", "1e300"}}; }, kParameter,
         kBad, "Invalid resourceLimits.cpu: '1e300'; must be 1000000 cores or fewer."},
        {"huge memory", [](CreateRequest& r) { r.resource_limits = {{"memory", "9000000Ti"}}; },
         kParameter, kBad, "resourceLimits.memory"},
        {"more memory", [](CreateRequest& r) { r.resource_limits = {{"memory", "1025Ti"}}; },
         kParameter, kBad, "must be 1024Ti or less."},
        {"huge gpu", [](CreateRequest& r) { r.resource_limits = {{"gpu", "65537"}}; }, kParameter,
         kBad, "must be 65536 or fewer."},
        {"memory", [](CreateRequest& r) { r.resource_limits = {{"memory", "1.5Gi"}}; }, kParameter,
         kBad, "resourceLimits.memory"},
        {"tiny memory", [](CreateRequest& r) { r.resource_limits = {{"memory", "1Mi"}}; },
         kParameter, kBad, "resourceLimits.memory"},
        {"gpu", [](CreateRequest& r) { r.resource_limits = {{"gpu", "1"}}; }, kParameter, kBad,
         "resourceLimits.gpu"},
        {"renew range",
         [](CreateRequest& r) { r.extensions = {{"access.renew.extend.seconds", "299"}}; },
         kParameter, kBad, "access.renew.extend.seconds"},
        {"renew blank",
         [](CreateRequest& r) { r.extensions = {{"access.renew.extend.seconds", ""}}; }, kParameter,
         kBad, "access.renew.extend.seconds"},
    };
    for (const Refused& refused : table) {
        INFO(refused.what);
        auto request = valid();
        refused.change(request);
        auto admitted = admit(request, rules(), kNow);
        REQUIRE_FALSE(admitted);
        CHECK(admitted.error().wire() == refused.wire);
        CHECK(admitted.error().code() == refused.code);
        CHECK_THAT(admitted.error().message(), Catch::Contains(refused.names));
    }
}

TEST_CASE("admission: volumes are checked, then refused by name") {
    auto request = valid();
    model::Volume volume;
    volume.name = "data";
    volume.mount_path = "/data";
    request.volumes = {volume};
    REQUIRE_THAT(admit(request, rules(), kNow).error().message(),
                 Catch::Contains("volumes.data.host"));
    request.volumes = {volume, volume};
    REQUIRE(admit(request, rules(), kNow).error().wire() == "VOLUME::DUPLICATE_NAME");
    request.volumes[0].sub_path = "a/../b";
    request.volumes.pop_back();
    REQUIRE(admit(request, rules(), kNow).error().wire() == "VOLUME::INVALID_SUB_PATH");
}

TEST_CASE("admission: the longest timeout holds for create") {
    auto strict = rules();
    strict.max_timeout_seconds = 100;
    auto request = valid();
    request.timeout_seconds = 100;
    REQUIRE(admit(request, strict, kNow));
    request.timeout_seconds = 101;
    REQUIRE(admit(request, strict, kNow).error().wire() == "SANDBOX::INVALID_PARAMETER");
    request.timeout_seconds.reset();
    REQUIRE(admit(request, strict, kNow));
}

TEST_CASE("admission: the first failure of the contract's order wins") {
    auto request = valid();
    request.metadata = model::StringMap{{"a b", ""}};
    request.secure_access = true;
    request.resource_limits = {{"cpu", "zz"}};
    REQUIRE(admit(request, rules(), kNow).error().wire() == "SANDBOX::INVALID_METADATA_LABEL");
    request.metadata.reset();
    REQUIRE_THAT(admit(request, rules(), kNow).error().message(), Catch::Contains("secureAccess"));
}
