#include "sdk/wire_egress.hpp"

#include "sdk/wire.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::sdk;
using namespace opensandbox::sdk::wire;

TEST_CASE("network policies are read and written") {
    auto status = decode_egress_status(
        R"({"status":"ok","mode":"enforcing","enforcementMode":"dns+nft",
            "policy":{"defaultAction":"deny","egress":[{"action":"allow","target":"a.b"}]}})",
        true);
    REQUIRE(status);
    CHECK(status->mode == "enforcing");
    CHECK(status->policy.default_action == "deny");
    REQUIRE(status->policy.egress.size() == 1);
    CHECK(status->policy.egress[0].target == "a.b");
    // Go writes null for an empty list.
    auto empty =
        decode_egress_status(R"({"policy":{"defaultAction":"allow","egress":null}})", true);
    REQUIRE(empty);
    CHECK(empty->policy.egress.empty());
    CHECK(decode_egress_status("{}", false));
    CHECK(decode_egress_status("{}", true).error().code() == ErrorCode::protocol);
    CHECK_FALSE(decode_egress_status(R"({"policy":{"egress":[1]}})", true));
    CHECK_FALSE(decode_egress_status(R"({"policy":{"egress":[{"action":"allow"}]}})", true));
    CHECK(encode_rules({NetworkRule("deny", "x.y")}) == R"([{"action":"deny","target":"x.y"}])");
    NetworkRule limited("allow", "10.0.0.0/8");
    limited.ports = {443, 80};
    NetworkRule everywhere("deny", "");
    everywhere.ports = {25};
    const std::string both = R"([{"action":"allow","target":"10.0.0.0/8","ports":[443,80]},)"
                             R"({"action":"deny","ports":[25]}])";
    CHECK(encode_rules({limited, everywhere}) == both);
    auto shown =
        decode_egress_status(R"({"policy":{"defaultAction":"deny","egress":)" + both + "}}", true);
    REQUIRE(shown);
    CHECK(encode_rules(shown->policy.egress) == both);
    CHECK(encode_targets({"a", "b"}) == R"(["a","b"])");
    NetworkPolicy policy;
    policy.default_action = "deny";
    CHECK(encode_policy(policy) == R"({"defaultAction":"deny","egress":[]})");
}

TEST_CASE("vaults are read; what their documents hold is never quoted") {
    auto state = decode_vault(
        R"({"revision":3,"credentials":[{"name":"k","sourceType":"inline","revision":2}],
            "bindings":[{"name":"b","revision":3,"match":{"hosts":["h.x"],"ports":[443]},
                         "auth":{"type":"apiKey","name":"X-Key"}}]})");
    REQUIRE(state);
    CHECK(state->revision == 3);
    CHECK(state->credentials.at(0).source_type == "inline");
    const BindingInfo& binding = state->bindings.at(0);
    REQUIRE(binding.match);
    CHECK(binding.match->ports == std::vector<std::int64_t>{443});
    CHECK(binding.match->paths.empty());
    CHECK(binding.auth_type == "apiKey");
    CHECK(binding.auth_name == "X-Key");
    CHECK_FALSE(decode_vault(R"({"revision":1,"credentials":[]})"));
    CHECK_FALSE(decode_binding(R"({"name":"b","revision":1,"match":{"ports":["x"]}})"));
    CHECK(check_vault_document(R"({ "credentials": [] })").value() == R"({"credentials":[]})");
    for (const char* text : {"secret", "[\"secret\"]", "{\"secret\""}) {
        auto refused = check_vault_document(text);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().message().find("secret") == std::string::npos);
    }
}

TEST_CASE("templates are read and written") {
    TemplateRequest request;
    CHECK(encode_template(request).error().message().find("image") == 0);
    request.image = "i";
    CHECK(encode_template(request).error().message().find("publish") == 0);
    request.publish = "s3://b/p";
    CHECK(encode_template(request).value() == R"({"image":"i","publish":"s3://b/p"})");
    request.readiness.emplace();
    request.readiness->warmup_seconds = 5;
    CHECK(encode_template(request).value() ==
          R"({"image":"i","publish":"s3://b/p","readiness":{"warmupSeconds":5}})");
    request.request_body = "[]";
    CHECK(encode_template(request).error().code() == ErrorCode::invalid_argument);

    auto info = decode_template(
        R"({"templateId":"tpl-1","image":"i","publish":"s3://b/p","format":"native",
            "status":{"phase":"Failed","message":"no"},"createdAt":"2026-01-02T03:04:05Z",
            "updatedAt":"2026-01-02T03:04:06Z","readiness":{"probe":"tcp://127.0.0.1:1"}})");
    REQUIRE(info);
    CHECK(info->phase == "Failed");
    CHECK_FALSE(info->metadata);
    CHECK(info->readiness->probe == "tcp://127.0.0.1:1");
    CHECK_FALSE(decode_template(R"({"templateId":"tpl-1"})"));
    CHECK_FALSE(decode_template_page(R"({"items":[]})"));
}

TEST_CASE("shells and diagnostics are read and written") {
    CHECK(encode_session("") == "{}");
    CHECK(encode_session("/w") == R"({"cwd":"/w"})");
    SessionRequest run("ls");
    CHECK(encode_session_run(run) == R"({"command":"ls"})");
    run.timeout = std::chrono::milliseconds(1500);
    run.working_directory = "/";
    CHECK(encode_session_run(run) == R"({"command":"ls","cwd":"/","timeout":1500})");
    CHECK(decode_session_id(R"({"session_id":"s"})").value() == "s");
    CHECK_FALSE(decode_session_id(R"({"session_id":""})"));

    auto content = decode_diagnostic_content(
        R"({"sandboxId":"s","kind":"logs","scope":"all","delivery":"inline",
            "contentType":"text/plain","truncated":true,"content":"x","warnings":["w"]})");
    REQUIRE(content);
    CHECK(content->truncated);
    CHECK(content->warnings->at(0) == "w");
    CHECK_FALSE(content->content_url);
    CHECK(decode_diagnostic_content("{}").error().code() == ErrorCode::protocol);
}
