#include "api_fixture.hpp"

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;
using Catch::Contains;

TEST_CASE("the policy is read, replaced, patched and reduced", "[egress]") {
    ApiWorld world;
    CHECK(body_of(world.ask("GET", "/policy")) ==
          "{\"status\":\"ok\",\"mode\":\"deny_all\",\"enforcementMode\":\"dns+nft\","
          "\"policy\":{\"egress\":[],\"defaultAction\":\"deny\"}}\n");
    const std::string method = GENERATE("POST", "PUT");
    CHECK(body_of(world.ask(
              method, "/policy",
              R"({"defaultAction":"deny","egress":[{"action":"allow","target":"a.test"}]})")) ==
          "{\"status\":\"ok\",\"mode\":\"enforcing\",\"enforcementMode\":\"dns+nft\"}\n");
    CHECK(status_of_answer(
              world.ask("PATCH", "/policy", R"([{"action":"deny","target":"b.test"}])")) == "200");
    CHECK_THAT(world.ask("GET", "/policy"),
               Contains(R"([{"action":"deny","target":"b.test"},{"action":"allow",)"));
    CHECK(status_of_answer(world.ask("DELETE", "/policy", R"(["B.test"])")) == "200");
    CHECK(texts(world.store->current()->user().rules) == "allow a.test");
    CHECK_THAT(read_text(world.file), Contains("a.test") && !Contains("b.test"));
    CHECK_THAT(world.ask("DELETE", "/policy", R"(["gone.test"])"),
               Contains("\"reason\":\"no matching targets found\""));
}

TEST_CASE("an empty body resets the policy", "[egress]") {
    ApiWorld world;
    world.ask("POST", "/policy", R"({"egress":[{"action":"allow","target":"a.test"}]})");
    CHECK(body_of(world.ask("POST", "/policy")) ==
          "{\"status\":\"ok\",\"mode\":\"deny_all\",\"reason\":\"policy reset to default "
          "deny-all\"}\n");
    CHECK(world.store->current()->user().rules.empty());
}

TEST_CASE("wrong bodies change nothing", "[egress]") {
    ApiWorld world;
    const std::string answer = world.ask("PATCH", "/policy");
    CHECK_THAT(answer, Contains("400 Bad Request") && Contains("text/plain; charset=utf-8") &&
                           Contains("X-Content-Type-Options: nosniff"));
    CHECK(body_of(answer) == "empty body\n");
    CHECK(body_of(world.ask("DELETE", "/policy", "[]")) == "invalid delete targets: empty array\n");
    CHECK(status_of_answer(world.ask("POST", "/policy", "{")) == "400");
    const std::string four = R"([{"target":"a.b"},{"target":"c.b"},{"target":"d.b"},)"
                             R"({"target":"e.b"}])";
    const std::string capped = world.ask("PATCH", "/policy", four);
    CHECK(status_of_answer(capped) == "413");
    CHECK(body_of(capped) == "egress rule total count 4 exceeds limit 3\n");
    CHECK(world.enforced.empty());
    CHECK_FALSE(std::filesystem::exists(world.file));
}

TEST_CASE("a policy that the packet filter refuses leaves nothing behind", "[egress]") {
    ApiWorld world;
    const std::string first = R"({"egress":[{"action":"allow","target":"a.test"}]})";
    const bool had_file = GENERATE(false, true);
    if (had_file) REQUIRE(status_of_answer(world.ask("POST", "/policy", first)) == "200");
    const auto before = world.store->current();
    const auto generation = world.store->generation();
    world.enforced.clear();
    world.fail_enforcing = 1;
    const std::string answer = world.ask("POST", "/policy", R"({"defaultAction":"allow"})");
    CHECK(status_of_answer(answer) == "500");
    CHECK(world.store->current() == before);
    CHECK(world.store->generation() != generation);
    CHECK(std::filesystem::exists(world.file) == had_file);
    if (had_file) CHECK_THAT(read_text(world.file), Contains("a.test"));
    // The policy that stays is put in force once more.
    REQUIRE(world.enforced.size() == 2);
    CHECK(world.enforced[1] == mode_of(before->user()));
}

TEST_CASE("a policy file that cannot be written refuses the change", "[egress]") {
    ApiWorld world;
    std::filesystem::create_directory(world.file);
    CHECK(status_of_answer(world.ask("POST", "/policy", R"({"defaultAction":"allow"})")) == "500");
    CHECK(world.enforced.empty());
    CHECK(world.store->current()->default_action() == Action::deny);
}

TEST_CASE("overlay files are read again when they change", "[egress]") {
    ApiWorld world;
    auto reload = [&] {
        Status done;
        world.loop.run([&]() -> Awaitable<void> { done = co_await world.store->reload_overlay(); });
        return done;
    };
    CHECK(reload());
    CHECK(world.enforced.empty());
    write_text(world.directory.path / "deny.always", "# never\nbad.test\n");
    CHECK(reload());
    REQUIRE(world.store->current()->rules().size() == 1);
    CHECK(world.enforced.size() == 1);
    write_text(world.directory.path / "deny.always", "bad.test\nhttp://no\n");
    CHECK_FALSE(reload());
    CHECK(world.store->current()->rules().size() == 1);
    std::filesystem::remove(world.directory.path / "deny.always");
    CHECK(reload());
    CHECK(world.store->current()->rules().empty());
}

TEST_CASE("changes of the policy come one after another", "[egress]") {
    ApiWorld world;
    int ended = 0;
    auto add = [&](std::string target) -> Awaitable<void> {
        const Rule one = rule("allow " + target);
        PolicyStore::Edit edit = [&](const Policy& user) {
            return std::optional<Policy>(merge(user, {PolicyRule(one.action, one.target)}));
        };
        const auto changed = co_await world.store->change(std::move(edit));
        CHECK(changed);
        ++ended;
    };
    for (const char* target : {"a.test", "b.test", "c.test"})
        net::spawn(world.loop.executor(), add(target), "change");
    world.loop.run([&]() -> Awaitable<void> {
        while (ended < 3)
            co_await net::sleep_for(std::chrono::milliseconds(1));
    });
    CHECK(texts(world.store->current()->user().rules) ==
          "allow c.test, allow b.test, allow a.test");
}
