#include "api_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;
using Catch::Contains;

namespace {

constexpr std::string_view kCreate =
    R"({"credentials":[{"name":"key","source":{"type":"inline","value":"s3cret-value"}}],)"
    R"("bindings":[{"name":"api","match":{"hosts":["api.test.com"]},)"
    R"("auth":{"type":"bearer","credential":"key"}}]})";

void allow_host(ApiWorld& world) {
    REQUIRE(status_of_answer(world.ask(
                "POST", "/policy", R"({"egress":[{"action":"allow","target":"api.test.com"}]})")) ==
            "200");
}

}  // namespace

TEST_CASE("a vault lives from its creation to its removal", "[egress]") {
    ApiWorld world;
    allow_host(world);
    CHECK(status_of_answer(world.ask("GET", "/credential-vault")) == "404");
    const std::string made = world.ask("POST", "/credential-vault", kCreate);
    CHECK(status_of_answer(made) == "201");
    CHECK_THAT(made, Contains("\"revision\":1") && !Contains("s3cret"));
    CHECK(status_of_answer(world.ask("POST", "/credential-vault", kCreate)) == "409");
    CHECK_THAT(world.ask("GET", "/credential-vault/credentials/key"), Contains("\"key\""));
    const std::string none = world.ask("GET", "/credential-vault/bindings/none");
    CHECK(status_of_answer(none) == "404");
    CHECK(body_of(none) == "binding not found\n");
    CHECK(status_of_answer(world.ask("PATCH", "/credential-vault", R"({"expectedRevision":7})")) ==
          "409");
    CHECK(status_of_answer(world.ask("DELETE", "/credential-vault")) == "204");
    CHECK(status_of_answer(world.ask("DELETE", "/credential-vault")) == "404");
}

TEST_CASE("a policy that uncovers a binding is refused", "[egress]") {
    ApiWorld world;
    allow_host(world);
    REQUIRE(status_of_answer(world.ask("POST", "/credential-vault", kCreate)) == "201");
    const std::string refused = world.ask("DELETE", "/policy", R"(["api.test.com"])");
    CHECK(status_of_answer(refused) == "400");
    CHECK_THAT(body_of(refused), Catch::StartsWith("credential vault policy validation: "));
    CHECK(world.store->current()->user().rules.size() == 1);
}

TEST_CASE("a vault is written only where it is safe", "[egress]") {
    ApiWorld world;
    allow_host(world);
    world.conditions.ready = false;
    CHECK(status_of_answer(world.ask("POST", "/credential-vault", kCreate)) == "412");
    world.conditions.ready = true;
    CHECK(status_of_answer(world.ask("POST", "/credential-vault", R"({"other":1})")) == "400");
    CHECK(status_of_answer(world.ask("POST", "/credential-vault", kCreate)) == "201");
}

TEST_CASE("that there is a vault is kept before it is, and told when it changed", "[egress]") {
    using Steps = std::vector<std::string>;
    ApiWorld world;
    allow_host(world);
    world.fail_marking = true;
    CHECK(status_of_answer(world.ask("POST", "/credential-vault", kCreate)) == "500");
    CHECK(status_of_answer(world.ask("GET", "/credential-vault")) == "404");
    world.fail_marking = false;
    CHECK(
        status_of_answer(world.ask("POST", "/credential-vault",
                                   R"({"bindings":[{"name":"b","match":{"hosts":["api.test.com"]},)"
                                   R"("auth":{"type":"bearer","credential":"none"}}]})")) == "400");
    CHECK(std::exchange(world.vault_steps, {}) == Steps{"held", "not held"});
    CHECK(status_of_answer(world.ask("POST", "/credential-vault", kCreate)) == "201");
    CHECK(status_of_answer(world.ask("PATCH", "/credential-vault", "{}")) == "200");
    CHECK(std::exchange(world.vault_steps, {}) == Steps{"held", "changed", "changed"});
    CHECK(status_of_answer(world.ask("DELETE", "/credential-vault")) == "204");
    CHECK(world.vault_steps == Steps{"changed", "not held"});
}

TEST_CASE("a vault that is lost is written again or removed, and not read", "[egress]") {
    ApiWorld world;
    allow_host(world);
    world.vault.lose();
    for (const auto* target : {"/credential-vault", "/credential-vault/bindings"}) {
        const std::string read = world.ask("GET", target);
        CHECK(status_of_answer(read) == "503");
        CHECK_THAT(body_of(read), Catch::StartsWith("CREDENTIAL_REVISION_INDETERMINATE: "));
    }
    CHECK(status_of_answer(world.ask("PATCH", "/credential-vault", R"({"expectedRevision":1})")) ==
          "503");
    if (GENERATE(false, true)) {
        CHECK(status_of_answer(world.ask("POST", "/credential-vault", kCreate)) == "201");
        CHECK(status_of_answer(world.ask("GET", "/credential-vault")) == "200");
    } else {
        CHECK(status_of_answer(world.ask("DELETE", "/credential-vault")) == "204");
        CHECK(status_of_answer(world.ask("GET", "/credential-vault")) == "404");
    }
}
