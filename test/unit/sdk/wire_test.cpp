#include "sdk/wire.hpp"

#include "base/clock.hpp"
#include "json/document.hpp"
#include "sdk/transport.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::sdk;
namespace json = opensandbox::json;

namespace {

json::object parsed(const std::string& text) {
    auto document = json::parse(text);
    REQUIRE(document.has_value());
    return document->get_object();
}

constexpr std::string_view kSandbox =
    R"({"id":"sb-1","image":{"uri":"host"},"status":{"state":"Running","reason":"R","message":"m",)"
    R"("lastTransitionAt":"2026-01-01T00:00:00.123456Z"},"metadata":{"team":"x"},)"
    R"("entrypoint":["tail","-f"],"expiresAt":"2026-01-01T00:10:00Z",)"
    R"("createdAt":"2026-01-01T00:00:00Z"})";

}  // namespace

TEST_CASE("a create request carries the defaults of the contract") {
    CreateOptions options("host");
    auto body = wire::encode_create(options);
    REQUIRE(body.has_value());
    CHECK(parsed(*body) ==
          parsed(R"({"image":{"uri":"host"},"timeout":600,"resourceLimits":{"cpu":"1",)"
                 R"("memory":"2Gi"},"entrypoint":["tail","-f","/dev/null"]})"));
}

TEST_CASE("no timeout is sent as null: manual cleanup") {
    CreateOptions options("host");
    options.timeout.reset();
    auto body = wire::encode_create(options);
    REQUIRE(body.has_value());
    CHECK(parsed(*body).at("timeout").is_null());
}

TEST_CASE("everything set on create is sent") {
    CreateOptions options("python:3.12");
    options.image_auth.emplace();
    options.image_auth->username = "u";
    options.image_auth->password = "p";
    options.environment = {{"A", "1"}, {"B", ""}};
    options.metadata = {{"team", "x"}};
    options.extensions = {{"k", "v"}};
    options.network_policy = R"({"defaultAction":"deny"})";
    options.volumes = R"([{"name":"v"}])";
    options.credential_proxy = true;
    auto body = wire::encode_create(options);
    REQUIRE(body.has_value());
    auto object = parsed(*body);
    CHECK(object.at("image").at("auth").at("password") == "p");
    CHECK(object.at("env").at("B") == "");
    CHECK(object.at("metadata").at("team") == "x");
    CHECK(object.at("extensions").at("k") == "v");
    CHECK(object.at("networkPolicy").at("defaultAction") == "deny");
    CHECK(object.at("volumes").at(0).at("name") == "v");
    CHECK(object.at("credentialProxy").at("enabled") == true);
    CHECK_FALSE(object.at("credentialProxy").get_object().contains("interceptionMode"));
    options.interception_mode = "credential-bound";
    CHECK(parsed(*wire::encode_create(options)).at("credentialProxy").at("interceptionMode") ==
          "credential-bound");
}

TEST_CASE("an interception mode that the server does not confirm is an error") {
    const std::string bound =
        R"({"id":"x","credentialProxy":{"interceptionMode":"credential-bound"}})";
    CHECK(wire::check_interception_mode("", "{}"));
    CHECK(wire::check_interception_mode("all", "{}"));
    CHECK(wire::check_interception_mode("credential-bound", bound));
    for (const auto& [wanted, reply] : std::vector<std::pair<std::string, std::string>>{
             {"all", bound},
             {"credential-bound", R"({"id":"x"})"},
             {"credential-bound", R"({"credentialProxy":{"interceptionMode":"all"}})"}}) {
        const Status refused = wire::check_interception_mode(wanted, reply);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().wire_code() == "INTERCEPTION_MODE_MISMATCH");
    }
}

TEST_CASE("a template brings its own limits and entrypoint") {
    CreateOptions options;
    options.template_id = "tpl_1";
    auto body = wire::encode_create(options);
    REQUIRE(body.has_value());
    auto object = parsed(*body);
    CHECK(object.at("templateId") == "tpl_1");
    CHECK_FALSE(object.contains("resourceLimits"));
    CHECK_FALSE(object.contains("entrypoint"));
}

TEST_CASE("embedded JSON that is none is refused by name") {
    CreateOptions options("host");
    options.network_policy = "[]";
    auto body = wire::encode_create(options);
    REQUIRE(body.has_error());
    CHECK(body.error().code() == ErrorCode::invalid_argument);
    CHECK(body.error().message().find("network policy") != std::string::npos);
    options.network_policy.clear();
    options.volumes = "{";
    CHECK(wire::encode_create(options).error().message().find("volumes") != std::string::npos);
    CreateOptions raw;
    raw.request_body = "not json";
    CHECK(wire::encode_create(raw).error().message().find("request body") != std::string::npos);
}

TEST_CASE("a sandbox is read with all its members") {
    auto info = wire::decode_sandbox(kSandbox);
    REQUIRE(info.has_value());
    CHECK(info->id == "sb-1");
    CHECK(info->state == "Running");
    CHECK(info->image == "host");
    CHECK(info->metadata.at("team") == "x");
    CHECK(info->entrypoint == std::vector<std::string>{"tail", "-f"});
    CHECK(opensandbox::to_rfc3339(*info->expires_at) == "2026-01-01T00:10:00Z");
    CHECK(opensandbox::to_rfc3339(*info->last_transition_at) == "2026-01-01T00:00:00.123456Z");
    CHECK_FALSE(info->snapshot_id);
    CHECK_FALSE(info->platform);
}

TEST_CASE("an answer that lacks a member or has it wrong is a protocol error naming it") {
    struct Case {
        const char* body;
        const char* named;
    };
    for (const Case& c :
         {Case{R"({"status":{"state":"x"},"createdAt":"2026-01-01T00:00:00Z"})", "id"},
          Case{R"({"id":"a","createdAt":"2026-01-01T00:00:00Z"})", "status"},
          Case{R"({"id":"a","status":{},"createdAt":"2026-01-01T00:00:00Z"})", "state"},
          Case{R"({"id":"a","status":{"state":"x"},"createdAt":"soon"})", "createdAt"},
          Case{"[]", "object"}, Case{"<html>", "object"}, Case{"", "object"}}) {
        auto info = wire::decode_sandbox(c.body);
        CAPTURE(c.body);
        REQUIRE(info.has_error());
        CHECK(info.error().code() == ErrorCode::protocol);
        CHECK(info.error().message().find(c.named) != std::string::npos);
    }
}

TEST_CASE("a page is read with its pagination") {
    auto page = wire::decode_sandbox_page(
        R"({"items":[)" + std::string(kSandbox) +
        R"(],"pagination":{"page":2,"pageSize":1,"totalItems":3,"totalPages":3,"hasNextPage":true}})");
    REQUIRE(page.has_value());
    CHECK(page->items.size() == 1);
    CHECK(page->pagination.page == 2);
    CHECK(page->pagination.has_next_page);
    CHECK(wire::decode_sandbox_page(R"({"items":[7],"pagination":{}})").has_error());
    CHECK(wire::decode_sandbox_page(R"({"items":[],"pagination":{}})").has_error());
}

TEST_CASE("file modes show octal digits in decimal") {
    CHECK(wire::mode_to_wire(0644) == 644);
    CHECK(wire::mode_to_wire(0) == 0);
    CHECK(wire::mode_to_wire(04755) == 4755);
    CHECK(wire::mode_from_wire(644) == 0644u);
    CHECK(wire::mode_from_wire(1777) == 01777u);
    CHECK_FALSE(wire::mode_from_wire(680));
    CHECK_FALSE(wire::mode_from_wire(-1));
    CHECK_FALSE(wire::mode_from_wire(17777));
    for (std::uint32_t mode = 0; mode <= 07777; ++mode) {
        if (wire::mode_from_wire(wire::mode_to_wire(mode)) != mode) FAIL("mode " << mode);
    }
}

TEST_CASE("commands are sent as text or as arguments, with what was set and nothing else") {
    CHECK(parsed(wire::encode_command(CommandRequest("echo hi"), false)) ==
          parsed(R"({"command":"echo hi"})"));
    CommandRequest request(std::vector<std::string>{"a b", "$HOME", ""});
    request.working_directory = "/tmp";
    request.timeout = std::chrono::milliseconds(1500);
    request.uid = 0;
    request.environment = {{"A", "1"}};
    CHECK(parsed(wire::encode_command(request, true)) ==
          parsed(R"({"argv":["a b","$HOME",""],"cwd":"/tmp","background":true,"timeout":1500,)"
                 R"("uid":0,"envs":{"A":"1"}})"));
}

TEST_CASE("file answers come back in the order asked for") {
    const std::string a =
        R"({"path":"/a","type":"directory","size":1,"modified_at":"2026-11-21T21:43:47.935194792Z",)"
        R"("created_at":"2026-11-21T21:43:47Z","owner":"root","group":"root","mode":755})";
    const std::string b =
        R"({"path":"/b","size":2,"modified_at":"2026-11-21T21:43:47+02:00",)"
        R"("created_at":"2026-11-21T21:43:47Z","owner":"root","group":"root","mode":644})";
    auto files = wire::decode_file_map(R"({"/a":)" + a + R"(,"/b":)" + b + "}", {"/b", "/a"});
    REQUIRE(files.has_value());
    CHECK((*files)[0].path == "/b");
    CHECK((*files)[0].type == FileType::file);
    CHECK((*files)[1].type == FileType::directory);
    CHECK((*files)[1].mode == 0755);
    auto missing = wire::decode_file_map("{}", {"/x"});
    REQUIRE(missing.has_error());
    CHECK(missing.error().message().find("/x") != std::string::npos);
    CHECK(wire::decode_file_list("[" + a + "," + b + "]")->size() == 2);
    CHECK(wire::decode_file_list("{}").has_error());
}

TEST_CASE("the metadata filter is a query string of its own") {
    CHECK(wire::encode_metadata_filter({{"a b", "c&d"}, {"k", ""}}) == "a%20b=c%26d&k=");
    CHECK(encode_query({{"metadata", wire::encode_metadata_filter({{"team", "x"}})}}) ==
          "metadata=team%3Dx");
}

TEST_CASE("a metadata patch deletes with null") {
    CHECK(parsed(wire::encode_metadata_patch({{"a", "1"}, {"b", std::nullopt}})) ==
          parsed(R"({"a":"1","b":null})"));
}

TEST_CASE("metrics need all five numbers; whole numbers are numbers") {
    auto metrics = wire::decode_metrics(
        R"({"cpu_count":2,"cpu_used_pct":97.9,"mem_total_mib":24105.5,"mem_used_mib":1,"timestamp":5})");
    REQUIRE(metrics.has_value());
    CHECK(metrics->cpu_count == 2.0);
    CHECK(metrics->timestamp == 5);
    CHECK(wire::decode_metrics(R"({"cpu_count":2})").has_error());
    auto failed = wire::decode_metrics(R"({"error":"no cgroup"})");
    REQUIRE(failed.has_error());
    CHECK(failed.error().message() == "no cgroup");
}

TEST_CASE("failed answers of every shape become errors with code, status and request id") {
    opensandbox::http::Fields fields{{"X-Request-ID", "r1"}};
    auto plain =
        error_of_answer(404, fields, R"({"code":"NATIVE::SANDBOX_NOT_FOUND","message":"gone"})");
    CHECK(plain.code() == ErrorCode::not_found);
    CHECK(plain.status() == 404);
    CHECK(plain.wire_code() == "NATIVE::SANDBOX_NOT_FOUND");
    CHECK(plain.message() == "gone");
    CHECK(plain.request_id() == "r1");

    auto invalid = error_of_answer(
        422, fields,
        R"({"detail":[{"loc":["body","timeout"],"msg":"too small"},{"loc":["query","page",0],"msg":"bad"}]})");
    CHECK(invalid.code() == ErrorCode::invalid_argument);
    CHECK(invalid.message() == "timeout: too small; page.0: bad");

    CHECK(error_of_answer(404, fields, R"({"detail":"Not Found"})").message() == "Not Found");
    CHECK(error_of_answer(409, fields, R"({"detail":{"code":"C","message":"m"}})").wire_code() ==
          "C");
    CHECK(error_of_answer(401, fields, R"({"error":"Unauthorized: x"})").message() ==
          "Unauthorized: x");
    CHECK(error_of_answer(500, fields, "Internal Server Error\n").message() ==
          "Internal Server Error");
    CHECK(error_of_answer(503, fields, "").message() ==
          "the server answered 503 Service Unavailable");
    CHECK(error_of_answer(500, fields, std::string(100000, 'x')).message().size() == 500);
}
