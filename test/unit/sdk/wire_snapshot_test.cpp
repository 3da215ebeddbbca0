#include "json/document.hpp"
#include "sdk/wire.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::sdk;

namespace {

json::value parsed(const std::string& text) {
    auto document = json::parse(text);
    REQUIRE(document.has_value());
    return *document;
}

}  // namespace

TEST_CASE("a fork request says only what was set") {
    CHECK((parsed(wire::encode_fork(ForkOptions(3))) == parsed(R"({"count":3})")));
    ForkOptions options(2);
    options.timeout = std::chrono::seconds(90);
    options.environment = {{"A", "b"}};
    options.metadata = {{"team", "x"}};
    options.entrypoint = {"sleep", "1"};
    CHECK((parsed(wire::encode_fork(options)) ==
           parsed(R"({"count":2,"timeout":90,"env":{"A":"b"},"metadata":{"team":"x"},
                     "entrypoint":["sleep","1"]})")));
    options = ForkOptions();
    options.no_timeout = true;
    CHECK((parsed(wire::encode_fork(options)) == parsed(R"({"count":1,"timeout":null})")));
}

TEST_CASE("copies and snapshots are read with all their members") {
    const std::string sandbox =
        R"({"id":"s","status":{"state":"Running"},"createdAt":"2026-01-01T00:00:00Z","entrypoint":[]})";
    auto copies = wire::decode_forks(R"({"items":[)" + sandbox + "," + sandbox + "]}");
    REQUIRE(copies);
    CHECK(copies->size() == 2);
    CHECK(copies->front().state == "Running");
    CHECK(wire::decode_forks(R"({"items":[1]})").error().code() == sdk::ErrorCode::protocol);
    CHECK(wire::decode_forks("{}").error().code() == sdk::ErrorCode::protocol);

    const std::string snapshot =
        R"({"id":"a","sandboxId":"s","name":"n","createdAt":"2026-01-01T00:00:00Z",)"
        R"("status":{"state":"Failed","reason":"r","message":"m"}})";
    auto one = wire::decode_snapshot(snapshot);
    REQUIRE(one);
    CHECK(one->sandbox_id == "s");
    CHECK(one->name == "n");
    CHECK(one->state == "Failed");
    CHECK(one->message == "m");
    auto page = wire::decode_snapshot_page(
        R"({"items":[)" + snapshot +
        R"(],"pagination":{"page":1,"pageSize":20,"totalItems":1,"totalPages":1,)"
        R"("hasNextPage":false}})");
    REQUIRE(page);
    CHECK(page->items.size() == 1);
    CHECK(page->pagination.total_items == 1);
    CHECK_FALSE(wire::decode_snapshot("{}"));
}

TEST_CASE("an image to be made says only what is different") {
    CHECK((parsed(wire::encode_named_image("", "a:1", {})) == parsed(R"({"reference":"a:1"})")));
    ImageConfigChange change;
    change.environment = std::map<std::string, std::string>{{"A", "b"}};
    change.user = "";
    change.cmd = std::vector<std::string>{};
    change.exposed_ports = std::vector<std::string>{"80/tcp"};
    CHECK((parsed(wire::encode_named_image("s", "a:1", change)) ==
           parsed(R"({"source":"s","reference":"a:1",
                     "config":{"env":{"A":"b"},"user":"","cmd":[],"exposedPorts":["80/tcp"]}})")));
}
