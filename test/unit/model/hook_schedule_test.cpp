#include "model/hook_schedule.hpp"

#include "model/hook_plan.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace opensandbox;
using namespace opensandbox::model;

namespace {

/// The moments at which a schedule comes next, one after the other.
std::vector<std::string> after(const std::string& text, const char* from, int count) {
    auto schedule = Schedule::parse(text);
    REQUIRE(schedule.has_value());
    std::vector<std::string> moments;
    Timestamp at = *parse_rfc3339(from);
    for (int i = 0; i < count; ++i) {
        at = schedule->next_after(at);
        moments.push_back(to_rfc3339(at).substr(0, 16));
    }
    return moments;
}

}  // namespace

TEST_CASE("a schedule of five fields comes as cron has it", "[model][schedule]") {
    using List = std::vector<std::string>;
    const char* from = "2026-01-30T10:07:30Z";
    CHECK(after("*/15 * * * *", from, 3) ==
          List{"2026-01-30T10:15", "2026-01-30T10:30", "2026-01-30T10:45"});
    CHECK(after("7 10 * * *", from, 1) == List{"2026-01-31T10:07"});
    CHECK(after("0 9-17/4 * * mon-fri", from, 3) ==
          List{"2026-01-30T13:00", "2026-01-30T17:00", "2026-02-02T09:00"});
    CHECK(after("5,10 0 29 feb *", from, 2) == List{"2028-02-29T00:05", "2028-02-29T00:10"});
    // Either day counts when both are given.
    CHECK(after("0 0 1 * 7", from, 2) == List{"2026-02-01T00:00", "2026-02-08T00:00"});
    CHECK(after("0 0 */2 * sun", from, 1) == List{"2026-02-01T00:00"});
    CHECK(after("@hourly", from, 1) == List{"2026-01-30T11:00"});
    CHECK(after("@monthly", from, 1) == List{"2026-02-01T00:00"});
    CHECK(after("@yearly", from, 1) == List{"2027-01-01T00:00"});
    CHECK(after("@every 1h30m", from, 1) == List{"2026-01-30T11:37"});
}

TEST_CASE("what is no schedule is refused with its part", "[model][schedule]") {
    for (const char* text : {"",
                             "* * * *",
                             "* * * * * *",
                             "60 * * * *",
                             "* 24 * * *",
                             "* * 0 * *",
                             "* * 32 * *",
                             "* * * 13 *",
                             "* * * * 8",
                             "*/0 * * * *",
                             "5-1 * * * *",
                             "a * * * *",
                             "1, * * * *",
                             "* * * * -1",
                             "0 0 30 feb *",
                             "@never",
                             "@every",
                             "@every 1",
                             "@every 0s",
                             "@every -1s",
                             "@every 99999999h",
                             "@hourly x",
                             "1-2-3 * * * *",
                             "99999999999999999999 * * * *"}) {
        const auto schedule = Schedule::parse(text);
        INFO(text);
        REQUIRE_FALSE(schedule.has_value());
        CHECK(schedule.error().code() == ErrorCode::invalid_argument);
        CHECK_FALSE(schedule.error().message().empty());
    }
    CHECK_FALSE(Schedule::parse(std::string(1'000, '*')).has_value());
}

TEST_CASE("a plan of hooks is read with its defaults", "[model][schedule]") {
    const auto plan = HookPlan::parse(
        R"({"preStart":{"command":["a","b"]},)"
        R"("periodic":[{"name":"n","schedule":"@daily","command":["c"],"timeoutSeconds":7}]})");
    REQUIRE(plan.has_value());
    REQUIRE(plan->pre_start);
    CHECK(plan->pre_start->command == std::vector<std::string>{"a", "b"});
    CHECK(plan->pre_start->timeout == HookPlan::kDefaultPreStartTimeout);
    REQUIRE(plan->periodic.size() == 1);
    CHECK(plan->periodic[0].hook.name == "n");
    CHECK(plan->periodic[0].hook.timeout == std::chrono::seconds(7));
    CHECK(HookPlan::parse("").has_value());
    for (const char* text : {"[]", "{", R"({"preStart":{"command":[]}})",
                             R"({"preStart":{"command":["a"],"timeoutSeconds":0}})",
                             R"({"periodic":[{"name":"n","command":["c"]}]})"}) {
        CHECK_FALSE(HookPlan::parse(text).has_value());
    }
}
