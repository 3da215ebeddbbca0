#include "model/create_request.hpp"

#include "model/fork_request.hpp"
#include "model/policy_request.hpp"
#include "model/sandbox.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using model::CreateRequest;
using model::FieldErrors;

namespace {

FieldErrors errors_of(std::string_view body) {
    auto parsed = model::parse_create_request(body);
    INFO(std::string(body));
    REQUIRE(std::holds_alternative<FieldErrors>(parsed));
    return std::get<FieldErrors>(parsed);
}

CreateRequest request_of(std::string_view body) {
    auto parsed = model::parse_create_request(body);
    INFO(std::string(body));
    if (auto* errors = std::get_if<FieldErrors>(&parsed)) FAIL(model::to_text(*errors));
    return std::get<CreateRequest>(parsed);
}

/// A valid body with more members.
std::string with(const std::string& members) {
    return R"({"image":{"uri":"i"},"entrypoint":["a"],"resourceLimits":{})" +
           (members.empty() ? "" : "," + members) + "}";
}

struct BadField {
    const char* members;
    const char* type;
    const char* where;
};

}  // namespace

TEST_CASE("create: an empty object misses its source, in the contract's shape") {
    REQUIRE(model::to_json(errors_of("{}")) ==
            R"({"detail":[{"type":"value_error","loc":["body"],"msg":"Value error, Exactly one of )"
            R"(image or snapshotId must be provided.","input":{},"ctx":{"error":{}}}]})");
}

TEST_CASE("create: an image needs an entrypoint") {
    REQUIRE(
        model::to_json(errors_of(R"({"image":{"uri":"x"}})")) ==
        R"({"detail":[{"type":"value_error","loc":["body"],"msg":"Value error, Entrypoint is )"
        R"(required when image is provided.","input":{"image":{"uri":"x"}},"ctx":{"error":{}}}]})");
}

TEST_CASE("create: malformed and missing bodies have their own types") {
    REQUIRE(errors_of("")[0].type == "missing");
    REQUIRE(errors_of("  \n")[0].type == "missing");
    REQUIRE(errors_of("{")[0].type == "json_invalid");
    REQUIRE(errors_of("{} x")[0].type == "json_invalid");
    REQUIRE(errors_of("[]")[0].type == "model_attributes_type");
    REQUIRE(errors_of("\"x\"")[0].type == "model_attributes_type");
    REQUIRE(errors_of("null")[0].type == "model_attributes_type");
    REQUIRE(errors_of(std::string(100, '[') + std::string(100, ']'))[0].type == "json_invalid");
}

TEST_CASE("create: every field's rule is checked and named") {
    const BadField bad[] = {
        {R"("timeout":59)", "greater_than_equal", "body.timeout"},
        {R"("timeout":"x")", "int_parsing", "body.timeout"},
        {R"("timeout":60.5)", "int_from_float", "body.timeout"},
        {R"("timeout":[])", "int_type", "body.timeout"},
        {R"("timeout":true)", "greater_than_equal", "body.timeout"},
        {R"("resourceLimits":{"cpu":1})", "string_type", "body.resourceLimits.cpu"},
        {R"("resourceRequests":[])", "dict_type", "body.resourceRequests"},
        {R"("env":{"A":1})", "string_type", "body.env.A"},
        {R"("env":"x")", "dict_type", "body.env"},
        {R"("metadata":{"a":null})", "string_type", "body.metadata.a"},
        {R"("entrypoint":[])", "too_short", "body.entrypoint"},
        {R"("entrypoint":"sh")", "list_type", "body.entrypoint"},
        {R"("entrypoint":["a",1])", "string_type", "body.entrypoint.1"},
        {R"("image":"x")", "model_attributes_type", "body.image"},
        {R"("image":{})", "missing", "body.image.uri"},
        {R"("image":{"uri":7})", "string_type", "body.image.uri"},
        {R"("image":{"uri":"i","auth":{"username":"u"}})", "missing", "body.image.auth.password"},
        {R"("snapshotId":1)", "string_type", "body.snapshotId"},
        {R"("secureAccess":"perhaps")", "bool_parsing", "body.secureAccess"},
        {R"("secureAccess":null)", "bool_type", "body.secureAccess"},
        {R"("secureAccess":2)", "bool_parsing", "body.secureAccess"},
        {R"("networkPolicy":{"egress":[{"action":"allow","target":""}]})", "string_too_short",
         "body.networkPolicy.egress.0.target"},
        {R"("networkPolicy":{"egress":[{}]})", "missing", "body.networkPolicy.egress.0.action"},
        {R"("platform":{"os":"linux"})", "missing", "body.platform.arch"},
        {R"("extensions":{"a":1})", "string_type", "body.extensions.a"},
        {R"("volumes":{})", "list_type", "body.volumes"},
        {R"("volumes":[{"name":"A","mountPath":"/a","host":{"path":"/x"}}])",
         "string_pattern_mismatch", "body.volumes.0.name"},
        {R"("volumes":[{"name":"a","mountPath":"a","host":{"path":"/x"}}])",
         "string_pattern_mismatch", "body.volumes.0.mountPath"},
        {R"("volumes":[{"name":"a","mountPath":"/a","host":{"path":"x"}}])",
         "string_pattern_mismatch", "body.volumes.0.host.path"},
        {R"("volumes":[{"name":"a","mountPath":"/a"}])", "value_error", "body.volumes.0"},
        {R"("volumes":[{"name":"a","mountPath":"/a","host":{"path":"/x"},"pvc":{"claimName":"c"}}])",
         "value_error", "body.volumes.0"},
        {R"("volumes":[{"name":"a","mountPath":"/a","pvc":{"claimName":"c","storage":"1Q"}}])",
         "string_pattern_mismatch", "body.volumes.0.pvc.storage"},
        {R"("volumes":[{"name":"a","mountPath":"/a","ossfs":{"bucket":"ab","endpoint":"e","accessKeyId":"i","accessKeySecret":"s"}}])",
         "string_too_short", "body.volumes.0.ossfs.bucket"},
        {R"("lifecycle":{"preStart":{"command":[]}})", "too_short",
         "body.lifecycle.preStart.command"},
        {R"("lifecycle":{"preStart":{"command":["a"],"timeoutSeconds":0}})", "greater_than_equal",
         "body.lifecycle.preStart.timeoutSeconds"},
        {R"("lifecycle":{"preStart":{"command":["a"],"timeoutSeconds":10801}})", "less_than_equal",
         "body.lifecycle.preStart.timeoutSeconds"},
        {R"("lifecycle":{"other":1})", "extra_forbidden", "body.lifecycle.other"},
        {R"("lifecycle":{"periodic":[{"name":"a","schedule":"s","command":["c"],"x":1}]})",
         "extra_forbidden", "body.lifecycle.periodic.0.x"},
        {R"("env":{"OPENSANDBOX_LIFECYCLE":"x"})", "value_error", "body.env"},
        {R"("credentialProxy":{"enabled":true})", "value_error", "body"},
        {R"("templateId":"t","timeout":60)", "value_error", "body"},
        // What would widen or narrow trust if it were passed over.
        {R"("networkPolicy":{"ingress":[]})", "extra_forbidden", "body.networkPolicy.ingress"},
        {R"("networkPolicy":{"egress":[{"action":"allow","target":"a.b","methods":["GET"]}]})",
         "extra_forbidden", "body.networkPolicy.egress.0.methods"},
        {R"("networkPolicy":{"egress":[{"action":"allow"}]})", "value_error",
         "body.networkPolicy.egress.0"},
        {R"("networkPolicy":{"egress":[{"action":"allow","ports":[]}]})", "too_short",
         "body.networkPolicy.egress.0.ports"},
        {R"("networkPolicy":{"egress":[{"action":"allow","ports":443}]})", "list_type",
         "body.networkPolicy.egress.0.ports"},
        {R"("networkPolicy":{"egress":[{"action":"allow","ports":[443,0]}]})", "greater_than_equal",
         "body.networkPolicy.egress.0.ports.1"},
        {R"("networkPolicy":{"egress":[{"action":"allow","ports":[65536]}]})", "less_than_equal",
         "body.networkPolicy.egress.0.ports.0"},
        {R"("networkPolicy":{"egress":[{"action":"allow","target":"a.b","ports":[443]}]})",
         "value_error", "body.networkPolicy.egress.0"},
        {R"("credentialProxy":{"enabled":false,"interceptionMode":"all"})", "value_error",
         "body.credentialProxy.interceptionMode"},
        {R"("credentialProxy":{"interceptionMode":"credential-bound"})", "value_error",
         "body.credentialProxy.interceptionMode"},
        {R"("networkPolicy":{},"credentialProxy":{"enabled":true,"interceptionMode":"some"})",
         "string_pattern_mismatch", "body.credentialProxy.interceptionMode"},
        {R"("networkPolicy":{},"credentialProxy":{"enabled":true,"interceptionMode":1})",
         "string_type", "body.credentialProxy.interceptionMode"},
        {R"("credentialProxy":{"enable":true})", "extra_forbidden", "body.credentialProxy.enable"},
        {R"("volumes":[{"name":"a","mountPath":"/a","host":{"path":"/x"},"readonly":true}])",
         "extra_forbidden", "body.volumes.0.readonly"},
        {R"("volumes":[{"name":"a","mountPath":"/a","host":{"path":"/x","readOnly":true}}])",
         "extra_forbidden", "body.volumes.0.host.readOnly"},
        {R"("volumes":[{"name":"a","mountPath":"/a","host":{"path":"/x"},"createSubPathIfMissing":true}])",
         "value_error", "body.volumes.0.createSubPathIfMissing"},
        {R"("approvalPolicy":{})", "value_error", "body.approvalPolicy"},
        {R"("features":[])", "value_error", "body.features"},
        {R"("egress":{"authBindings":[]})", "value_error", "body.egress"},
        {R"("lifecycle":{"idlePolicy":{"idleTimeoutSeconds":60}})", "value_error",
         "body.lifecycle.idlePolicy"},
        {R"("NetworkPolicy":{})", "value_error", "body.NetworkPolicy"},
        {R"("secure-access":true)", "value_error", "body.secure-access"},
    };
    for (const BadField& field : bad) {
        auto errors = errors_of(with(field.members));
        CHECK(errors[0].type == field.type);
        std::string text = model::to_text(errors);
        CHECK(text.substr(0, text.find(": ")) == field.where);
    }
}

TEST_CASE("create: what is not served says so by its name") {
    CHECK(
        errors_of(with(R"("lifecycle":{"idlePolicy":{}})"))[0].msg ==
        "Value error, idlePolicy is not served: sandboxes are paused and resumed by request only.");
}

TEST_CASE("create: members that are null are absent, also those of newer clients") {
    const auto request = request_of(
        with(R"("approvalPolicy":null,"features":null,"lifecycle":{"idlePolicy":null},)"
             R"("credentialProxy":{"enabled":false,"interceptionMode":null,"newer":null},)"
             R"("networkPolicy":{"egress":[{"action":"allow","target":"a.b","ports":null}]},)"
             R"("volumes":[{"name":"a","mountPath":"/a","host":{"path":"/x"},"newer":null}])"));
    REQUIRE(request.network_policy);
    CHECK(request.network_policy->egress[0].ports.empty());
}

TEST_CASE("create: which connections are intercepted") {
    const auto bound = [](const std::string& proxy) {
        return request_of(
                   with(R"("networkPolicy":{},"credentialProxy":{"enabled":true)" + proxy + "}"))
            .credential_bound;
    };
    CHECK_FALSE(bound(""));
    CHECK_FALSE(bound(R"(,"interceptionMode":null)"));
    CHECK_FALSE(bound(R"(,"interceptionMode":"all")"));
    CHECK(bound(R"(,"interceptionMode":"credential-bound")"));
}

TEST_CASE("create: rules have ports, and a target or not") {
    const auto request = request_of(with(
        R"("networkPolicy":{"defaultAction":"deny","egress":[)"
        R"({"action":"allow","target":"10.0.0.0/8","ports":[443,"80"]},)"
        R"({"action":"deny","ports":[25]},{"action":"allow","target":"fd00::1","ports":[1]}]})"));
    REQUIRE(request.network_policy);
    CHECK(model::to_json(*request.network_policy) ==
          R"({"defaultAction":"deny","egress":[)"
          R"({"action":"allow","target":"10.0.0.0/8","ports":[443,80]},)"
          R"({"action":"deny","ports":[25]},{"action":"allow","target":"fd00::1","ports":[1]}]})");
}

TEST_CASE("policy bodies: ports as in a create, and nothing unknown") {
    CHECK(model::check_rules_body(R"([{"action":"deny","ports":[25]}])").empty());
    CHECK(model::check_rules_body(R"([{"action":"deny"}])").size() == 1);
    CHECK(model::check_rules_body(R"([{"action":"deny","target":"a.b","x":1}])")[0].type ==
          "extra_forbidden");
    CHECK(model::check_rules_body(R"([{"action":"allow","target":"a.b","ports":[1]}])").size() ==
          1);
    CHECK(model::check_policy_body(R"({"ingress":[]})")[0].type == "extra_forbidden");
    CHECK(model::check_policy_body(R"({"egress":[{"action":"allow"}]})").size() == 1);
    CHECK(model::has_ports(R"({"egress":[{"action":"deny","ports":[25]}]})"));
    CHECK(model::has_ports(R"([{"action":"deny","target":"10.0.0.1","ports":[25]}])"));
    CHECK_FALSE(model::has_ports(R"([{"action":"deny","target":"10.0.0.1","ports":null}])"));
}

TEST_CASE("fork: overrides are refused, and what is unknown") {
    const auto refusal = [](std::string_view body) {
        auto parsed = model::parse_fork_request(body);
        REQUIRE(std::holds_alternative<FieldErrors>(parsed));
        return model::to_text(std::get<FieldErrors>(parsed));
    };
    CHECK(refusal(R"({"timeout":60,"overrides":{"networkPolicy":{}}})")
              .starts_with("body.overrides: "));
    CHECK(refusal(R"({"overrides":{}})").find("not served") != std::string::npos);
    CHECK(refusal(R"({"networkPolicy":{}})").starts_with("body.networkPolicy: "));
    CHECK(std::holds_alternative<model::ForkRequest>(model::parse_fork_request(R"({"count":2})")));
}

TEST_CASE("create: all broken fields are reported at once") {
    auto errors = errors_of(R"({"image":{},"timeout":1,"env":3,"entrypoint":[]})");
    REQUIRE(errors.size() == 4);
}

TEST_CASE("create: limits are required but may be empty") {
    auto errors = errors_of(R"({"image":{"uri":"i"},"entrypoint":["a"]})");
    REQUIRE(errors.size() == 1);
    REQUIRE(errors[0].msg.find("resourceLimits") != std::string::npos);
    REQUIRE(request_of(with("")).resource_limits.empty());
}

TEST_CASE("create: snake case, unknown keys and lenient types are accepted") {
    auto request = request_of(
        R"({"image":{"uri":"i","extra":1},"entrypoint":["a"],"resource_limits":{"cpu":"1"},)"
        R"("secure_access":"no","timeout":"70","whatever":{"x":[]},"snapshot_id":" "})");
    REQUIRE(request.image == "i");
    REQUIRE(request.timeout_seconds == 70);
    REQUIRE(request.resource_limits.size() == 1);
    REQUIRE_FALSE(request.secure_access);
    REQUIRE_FALSE(request.snapshot_id);
}

TEST_CASE("create: null is absent, and a null variable is dropped") {
    auto request = request_of(with(R"("timeout":null,"env":{"A":"1","B":null},"metadata":null)"));
    REQUIRE_FALSE(request.timeout_seconds);
    REQUIRE_FALSE(request.metadata);
    REQUIRE(request.env == model::StringMap{{"A", "1"}});
}

TEST_CASE("create: numbers beyond 64 bits are cut, not wrapped") {
    REQUIRE(request_of(with(R"("timeout":1e30)")).timeout_seconds > 9'000'000'000'000'000'000);
    REQUIRE(request_of(with(R"("timeout":"99999999999999999999999")")).timeout_seconds ==
            INT64_MAX);
}

TEST_CASE("create: one word with a space is split like a shell does") {
    using Words = std::vector<std::string>;
    auto split = [](const std::string& text) {
        return request_of(R"({"image":{"uri":"i"},"resourceLimits":{},"entrypoint":[)" +
                          model::json_string(text) + "]}")
            .entrypoint;
    };
    REQUIRE(split("tail -f /dev/null") == Words{"tail", "-f", "/dev/null"});
    REQUIRE(split(R"(sh -c "echo 'a b'")") == Words{"sh", "-c", "echo 'a b'"});
    REQUIRE(split(R"(a\ b '' "c\"d")") == Words{"a b", "", "c\"d"});
    REQUIRE(split("python3") == Words{"python3"});
    REQUIRE(split("broken 'quote") == Words{"broken 'quote"});
    REQUIRE(request_of(with("")).entrypoint == Words{"a"});
}

TEST_CASE("create: two words are left alone") {
    auto request = request_of(
        R"({"image":{"uri":"i"},"resourceLimits":{},"entrypoint":["sh -c","echo a b"]})");
    REQUIRE(request.entrypoint == std::vector<std::string>{"sh -c", "echo a b"});
}

TEST_CASE("create: periodic hooks have distinct names") {
    auto errors = errors_of(with(
        R"("lifecycle":{"periodic":[{"name":"a","schedule":"s","command":["c"]},{"name":"a","schedule":"s","command":["c"]}]})"));
    REQUIRE(errors[0].msg.find("'a' is used twice") != std::string::npos);
}

TEST_CASE("renew: times are read leniently and refused with a reason") {
    auto time_of = [](std::string_view body) {
        auto parsed = model::parse_renew_request(body);
        INFO(std::string(body));
        REQUIRE(std::holds_alternative<Timestamp>(parsed));
        return to_rfc3339(std::get<Timestamp>(parsed));
    };
    REQUIRE(time_of(R"({"expiresAt":"2030-01-01T00:00:00Z"})") == "2030-01-01T00:00:00Z");
    REQUIRE(time_of(R"({"expires_at":"2030-01-01T02:00:00+02:00"})") == "2030-01-01T00:00:00Z");
    REQUIRE(time_of(R"({"expiresAt":1893456000})") == "2030-01-01T00:00:00Z");
    for (const char* body : {R"({})", R"({"expiresAt":null})", R"({"expiresAt":"soon"})",
                             R"({"expiresAt":true})", R"({"expiresAt":1e99})"}) {
        auto parsed = model::parse_renew_request(body);
        INFO(body);
        REQUIRE(std::holds_alternative<FieldErrors>(parsed));
    }
}
