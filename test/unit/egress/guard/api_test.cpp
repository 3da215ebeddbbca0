#include "api_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;
using Catch::Contains;

TEST_CASE("the API asks for its token", "[egress]") {
    ApiWorld world("s3cret");
    const std::string target = GENERATE("/policy", "/credential-vault", "/policy/denials",
                                        "/metrics", "/credential-vault/bindings/x");
    const std::string refused = world.ask("GET", target);
    CHECK(status_of_answer(refused) == "401");
    CHECK(body_of(refused) == "unauthorized\n");
    CHECK(status_of_answer(world.ask("GET", target, "", "OPENSANDBOX-EGRESS-AUTH: s3creT\r\n")) ==
          "401");
    CHECK(status_of_answer(world.ask("GET", target, "", "opensandbox-egress-auth: s3cret\r\n")) !=
          "401");
}

TEST_CASE("health is told to everybody", "[egress]") {
    ApiWorld world("s3cret");
    const std::string well = world.ask("GET", "/healthz");
    CHECK(status_of_answer(well) == "200");
    CHECK(body_of(well) == "ok");
    world.unhealthy = "mitmproxy not ready";
    const std::string ill = world.ask("GET", "/healthz");
    CHECK(status_of_answer(ill) == "503");
    CHECK(body_of(ill) == "mitmproxy not ready\n");
}

TEST_CASE("routes are exact", "[egress]") {
    ApiWorld world;
    for (const char* target : {"/", "/policy/", "/policyx", "/credential-vaultx", "/healthz/",
                               "/credential-vault/", "/credential-vault/else"}) {
        INFO(target);
        CHECK(status_of_answer(world.ask("GET", target)) == "404");
    }
    auto allowed = [&](std::string_view method, std::string_view target) {
        const std::string answer = world.ask(method, target);
        CHECK(status_of_answer(answer) == "405");
        CHECK(body_of(answer) == "method not allowed\n");
        const auto at = answer.find("Allow: ");
        REQUIRE(at != std::string::npos);
        return answer.substr(at + 7, answer.find('\n', at) - at - 7);
    };
    CHECK(allowed("OPTIONS", "/policy") == "GET, POST, PUT, PATCH, DELETE");
    CHECK(allowed("PUT", "/credential-vault") == "GET, POST, PATCH, DELETE");
    CHECK(allowed("POST", "/credential-vault/bindings") == "GET");
    CHECK(allowed("POST", "/credential-vault/_active") == "GET");
    CHECK(status_of_answer(world.ask("GET", "/credential-vault/_active")) == "403");
}

TEST_CASE("a body is cut behind a mebibyte", "[egress]") {
    ApiWorld world;
    const std::string padding(kMaxApiBody - 2, ' ');
    CHECK(status_of_answer(world.ask("POST", "/policy", padding + "{}")) == "200");
    CHECK(status_of_answer(world.ask("POST", "/policy", padding + " {}")) == "400");
}

TEST_CASE("denials are told by their numbers", "[egress]") {
    ApiWorld world;
    CHECK(body_of(world.ask("GET", "/policy/denials")) ==
          "{\"denials\":[],\"next\":0,\"lost\":0}\n");
    for (int i = 1; i <= 6; ++i) {
        world.denials.add(DenialRecord(DenialRecord::Kind::name, "n" + std::to_string(i), "why"));
    }
    const std::string all = body_of(world.ask("GET", "/policy/denials"));
    CHECK_THAT(all, Contains("{\"sequence\":3,") && Contains("\"target\":\"n6\"") &&
                        Contains("\"next\":6,\"lost\":2}"));
    const std::string page = body_of(world.ask("GET", "/policy/denials?since=4&limit=1"));
    CHECK_THAT(page, Contains("\"target\":\"n5\"") && !Contains("n6") &&
                         Contains("\"next\":5,\"lost\":0}"));
    CHECK(status_of_answer(world.ask("GET", "/policy/denials?since=x")) == "400");
    CHECK(status_of_answer(world.ask("GET", "/policy/denials?limit=0")) == "400");
    CHECK(status_of_answer(world.ask("POST", "/policy/denials")) == "405");
}

TEST_CASE("replies that break the document are found", "[egress]") {
    const std::string head = "HTTP/1.1 200 OK\nContent-Type: application/json\n\n";
    const std::string status = R"({"status":"ok","mode":"deny_all","enforcementMode":"dns")";
    const std::string policy = R"(,"policy":{"egress":[],"defaultAction":"deny"}})";
    CHECK(breach_of_contract("GET", "/policy", head + status + policy + "\n") == "");
    CHECK_THAT(breach_of_contract("GET", "/policy", head + status + policy),
               Contains("does not end its line"));
    CHECK_THAT(breach_of_contract("GET", "/policy", head + status + "}\n"),
               Contains("lacks policy"));
    CHECK_THAT(breach_of_contract("PUT", "/policy", head + status + policy + "\n"),
               Contains("body/policy: not allowed"));
    CHECK_THAT(
        breach_of_contract("GET", "/policy", head + R"({"status":"ill","mode":"deny_all"})" + "\n"),
        Contains("breaks const"));
    const std::string error = "HTTP/1.1 404 Not Found\nContent-Type: text/plain; charset=utf-8\n";
    CHECK_THAT(breach_of_contract("GET", "/credential-vault/bindings/x", error + "\nno\n"),
               Contains("X-Content-Type-Options"));
    CHECK_THAT(breach_of_contract("GET", "/policy", error + "\nno\n"), Contains("no such status"));
    CHECK(breach_of_contract("PUT", "/credential-vault", "HTTP/1.1 405 Not\n\n") == "");
    CHECK_THAT(breach_of_contract("PUT", "/credential-vault", head), Contains("does not have"));
}
