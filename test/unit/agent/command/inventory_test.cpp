#include "agent/command/inventory.hpp"

#include "json/document.hpp"
#include "unit/agent/agent_process.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;

namespace {

json::object listed(const AgentProcess& agent, const std::string& query = {}) {
    Reply reply = agent.call("GET", "/command" + query);
    CAPTURE(query, reply.body);
    REQUIRE(reply.status == 200);
    CHECK(reply.fields.get("Cache-Control") == "no-store");
    return json::parse(reply.body)->as_object();
}

std::string id_of(const json::value& item) {
    return std::string(item.at("session").as_string());
}

std::string started(const AgentProcess& agent, const std::string& command, bool background) {
    auto events = agent.command(shell_request(command, background ? R"("background":true)" : ""));
    REQUIRE_FALSE(events.empty());
    return events.front().text;
}

}  // namespace

TEST_CASE("The listing shows what runs and how the rest ended, the latest first") {
    AgentProcess agent;
    CHECK(listed(agent).at("commands").as_array().empty());
    const std::string failed = started(agent, "exit 3", false);
    const std::string good = started(agent, "true", false);
    const std::string runs = started(agent, "exec sleep 60", true);
    const json::object all = listed(agent);
    const json::array& items = all.at("commands").as_array();
    REQUIRE(items.size() == 3);
    CHECK(id_of(items[0]) == runs);
    CHECK(id_of(items[1]) == good);
    CHECK(id_of(items[2]) == failed);
    const json::object& first = items[0].as_object();
    CHECK(first.at("running") == true);
    CHECK(first.at("background") == true);
    CHECK(first.size() == 4);
    const json::object& last = items[2].as_object();
    CHECK(last.at("running") == false);
    CHECK(last.at("background") == false);
    CHECK(last.at("exit_code") == 3);
    CHECK(last.contains("finished_at"));
    CHECK(last.contains("error"));
    CHECK_FALSE(items[1].as_object().contains("error"));
    CHECK(all.at("pagination").as_object().size() == 1);
    CHECK(listed(agent, "?running=true").at("commands").as_array().size() == 1);
    CHECK(listed(agent, "?running=false").at("commands").as_array().size() == 2);
    agent.call("DELETE", "/command?id=" + runs);
    CHECK(listed(agent, "?running=true").at("commands").as_array().empty());
}

TEST_CASE("The pages of the listing hold every command once, whatever begins meanwhile") {
    AgentProcess agent;
    std::vector<std::string> ids;
    for (int i = 0; i < 5; ++i)
        ids.push_back(started(agent, "true", false));
    std::vector<std::string> seen;
    std::string cursor;
    while (true) {
        const json::object page =
            listed(agent, "?limit=2" + (cursor.empty() ? "" : "&cursor=" + cursor));
        for (const json::value& item : page.at("commands").as_array())
            seen.insert(seen.begin(), id_of(item));
        started(agent, "true", false);
        const json::object& pagination = page.at("pagination").as_object();
        CHECK(pagination.at("limit") == 2);
        if (!pagination.contains("nextCursor")) break;
        cursor = std::string(pagination.at("nextCursor").as_string());
    }
    CHECK(seen == ids);
    CHECK_FALSE(
        listed(agent, "?running=true&limit=1").at("pagination").as_object().contains("nextCursor"));
}

TEST_CASE("A query of the listing that is not understood is refused and names its parameter") {
    AgentProcess agent;
    struct Row {
        const char* query;
        const char* name;
    };
    for (const Row& row :
         {Row{"limit=0", "limit"}, Row{"limit=101", "limit"}, Row{"limit=-1", "limit"},
          Row{"limit=1x", "limit"}, Row{"limit=99999999999999999999", "limit"},
          Row{"limit=", "limit"}, Row{"running=1", "running"}, Row{"running", "running"},
          Row{"running=true&running=true", "running"}, Row{"cursor=a", "cursor"},
          Row{"cursor=", "cursor"}, Row{"offset=1", "offset"}}) {
        Reply reply = agent.call("GET", std::string("/command?") + row.query);
        CAPTURE(row.query, reply.body);
        CHECK(reply.status == 400);
        auto body = json::parse(reply.body);
        REQUIRE(body);
        CHECK(body->at("code") == "INVALID_QUERY");
        CHECK(std::string(body->at("message").as_string()).starts_with(row.name));
    }
    auto query = parse_inventory_query("running=false&limit=100&cursor=18446744073709551615");
    REQUIRE(query);
    CHECK(query->running == false);
    CHECK(query->limit == 100);
    CHECK(query->before == UINT64_MAX);
}

TEST_CASE("Commands that ended are kept in bounds, of number and of text") {
    CommandRegistry registry("/tmp");
    auto end = [&](std::string_view content) {
        auto record = registry.add(content);
        registry.failed(record, "could not");
        return record->id;
    };
    auto runs = registry.add("runs on");
    const std::string first = end("first");
    for (std::size_t i = 1; i < CommandRegistry::kMaxEnded; ++i)
        end("x");
    CHECK(registry.find(first));
    end("one more");
    CHECK_FALSE(registry.find(first));
    CHECK(registry.size() == CommandRegistry::kMaxEnded + 1);
    const std::string long_text(16 * 1024, 'x');
    for (int i = 0; i < 2'000; ++i)
        end(long_text);
    CHECK(registry.size() <= CommandRegistry::kMaxEndedText / long_text.size() + 1);
    CHECK(registry.find(runs->id));
    std::size_t seen = 0;
    std::uint64_t last = UINT64_MAX;
    registry.each_latest_first({}, [&](const CommandRecord& record) {
        CHECK(record.number < last);
        last = record.number;
        return ++seen < registry.size();
    });
    CHECK(seen == registry.size());
    CHECK(last == runs->number);
}

TEST_CASE("An unknown command is said not to be found, in the words that clients look for") {
    AgentProcess agent;
    for (const char* target :
         {"/command/status/nope", "/command/nope/logs", "/command/nope/stream"}) {
        Reply reply = agent.call("GET", target);
        CAPTURE(target);
        CHECK(reply.status == 404);
        auto body = json::parse(reply.body);
        REQUIRE(body);
        CHECK(body->at("code") == "INVALID_REQUEST_BODY");
        CHECK(body->at("message") == "command not found: nope");
    }
}
