#include "lifecycle/host/pool_plan.hpp"

#include "lifecycle/pool_template.hpp"
#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::lifecycle;
using model::PoolCapacity;

TEST_CASE("pool plan: the buffer is refilled to its middle, shrunk to its end, within the pool") {
    // buffer 2..6, pool 0..10
    PoolCapacity wide(2, 6, 0, 10);
    CHECK(plan_pool(wide, PoolCounts(0, 0, 0)) == PoolStep(4, 0));
    CHECK(plan_pool(wide, PoolCounts(1, 0, 0)) == PoolStep(3, 0));
    CHECK(plan_pool(wide, PoolCounts(0, 4, 0)) == PoolStep(0, 0));
    CHECK(plan_pool(wide, PoolCounts(1, 1, 5)) == PoolStep(0, 0));
    CHECK(plan_pool(wide, PoolCounts(2, 0, 0)) == PoolStep(0, 0));
    CHECK(plan_pool(wide, PoolCounts(6, 0, 0)) == PoolStep(0, 0));
    CHECK(plan_pool(wide, PoolCounts(9, 0, 0)) == PoolStep(0, 3));
    CHECK(plan_pool(wide, PoolCounts(0, 0, 8)) == PoolStep(2, 0));
    CHECK(plan_pool(wide, PoolCounts(0, 0, 10)) == PoolStep(0, 0));
    CHECK(plan_pool(wide, PoolCounts(2, 0, 10)) == PoolStep(0, 2));
    CHECK(plan_pool(wide, PoolCounts(1, 3, 10)) == PoolStep(0, 1));
}

TEST_CASE("pool plan: the least of the pool counts idle and allocated ones together") {
    PoolCapacity floor(0, 1, 5, 8);
    CHECK(plan_pool(floor, PoolCounts(0, 0, 0)) == PoolStep(5, 0));
    CHECK(plan_pool(floor, PoolCounts(1, 0, 2)) == PoolStep(2, 0));
    CHECK(plan_pool(floor, PoolCounts(3, 0, 2)) == PoolStep(0, 0));
    CHECK(plan_pool(floor, PoolCounts(3, 0, 4)) == PoolStep(0, 2));
    CHECK(plan_pool(PoolCapacity(0, 0, 0, 0), PoolCounts(3, 1, 1)) == PoolStep(0, 3));
}

TEST_CASE("pool plan: a plan carried out leaves nothing to do") {
    for (std::int64_t buffer_min = 0; buffer_min < 4; ++buffer_min) {
        for (std::int64_t buffer_max = buffer_min; buffer_max < 5; ++buffer_max) {
            for (std::int64_t pool_min = 0; pool_min < 5; ++pool_min) {
                for (std::int64_t idle = 0; idle < 6; ++idle) {
                    for (std::int64_t allocated = 0; allocated < 6; ++allocated) {
                        PoolCapacity capacity(buffer_min, buffer_max, pool_min, 5);
                        PoolCounts counts(idle, 0, allocated);
                        auto step = plan_pool(capacity, counts);
                        counts.idle += step.make - step.remove;
                        REQUIRE(counts.idle >= 0);
                        REQUIRE(plan_pool(capacity, counts) == PoolStep(0, 0));
                        REQUIRE((counts.total() <= 5 || counts.idle == 0));
                        REQUIRE(counts.total() >= pool_min);
                    }
                }
            }
        }
    }
}

TEST_CASE("pool plan: room is an idle one or space for another") {
    PoolCapacity capacity(0, 2, 0, 3);
    CHECK(has_room(capacity, PoolCounts(0, 0, 2)));
    CHECK(has_room(capacity, PoolCounts(1, 0, 2)));
    CHECK(has_room(capacity, PoolCounts(0, 1, 2)));
    CHECK_FALSE(has_room(capacity, PoolCounts(0, 0, 3)));
}

TEST_CASE("pool capacity must be consistent") {
    CHECK(check_capacity(PoolCapacity(0, 0, 0, 0)));
    CHECK(check_capacity(PoolCapacity(1, 2, 3, 4)));
    CHECK_FALSE(check_capacity(PoolCapacity(3, 2, 0, 9)));
    CHECK_FALSE(check_capacity(PoolCapacity(0, 2, 5, 4)));
    CHECK_FALSE(check_capacity(PoolCapacity(5, 5, 0, 4)));
}

TEST_CASE("pool template: a create request without what is a request's alone") {
    auto plain = parse_template(R"({"image":{"uri":"python"}})");
    REQUIRE(plain);
    CHECK(plain->entrypoint == std::vector<std::string>{"tail", "-f", "/dev/null"});
    for (const char* bad : {
             R"([])",
             R"({})",
             R"({"image":{"uri":"p","auth":{"username":"u","password":"p"}}})",
             R"({"image":{"uri":"p"},"timeout":60})",
             R"({"image":{"uri":"p"},"extensions":{"poolRef":"x"}})",
             R"({"image":{"uri":"p"},"env":5})",
             R"({"templateId":"t","timeout":60})",
         }) {
        INFO(bad);
        auto refused = parse_template(bad);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().wire() == "SANDBOX::INVALID_PARAMETER");
    }
}

TEST_CASE("pool template: a request lies over it, limits and image are the pool's") {
    auto base = parse_template(
        R"({"image":{"uri":"python"},"env":{"A":"1","B":"2"},"resourceLimits":{"cpu":"1"},)"
        R"("metadata":{"team":"x"}})");
    REQUIRE(base);
    model::CreateRequest request;
    request.extensions = {{"poolRef", "p"}, {"opensandbox.extensions.a", "b"}};
    request.timeout_seconds = 60;
    request.env = {{"B", "3"}, {"C", "4"}};
    request.metadata = model::StringMap{{"user", "y"}};
    request.resource_limits = {{"cpu", "2"}};
    request.entrypoint = {"tail", "-f", "/dev/null"};
    auto merged = apply_template(base.value(), request);
    REQUIRE(merged);
    CHECK(merged->env == model::StringMap{{"A", "1"}, {"B", "3"}, {"C", "4"}});
    CHECK(*merged->metadata == model::StringMap{{"team", "x"}, {"user", "y"}});
    CHECK(merged->resource_limits == model::StringMap{{"cpu", "1"}});
    CHECK(merged->extensions == model::StringMap{{"opensandbox.extensions.a", "b"}});
    CHECK(merged->timeout_seconds == 60);
    CHECK(merged->image == "python");
    CHECK_FALSE(fits_idle(base.value(), request));
    request.env = {{"A", "1"}};
    CHECK(fits_idle(base.value(), request));
    request.entrypoint = {"sh"};
    CHECK_FALSE(fits_idle(base.value(), request));

    request.image = "python";
    CHECK(apply_template(base.value(), request));
    request.image = "node";
    CHECK_FALSE(apply_template(base.value(), request));
    request.image.reset();
    request.network_policy.emplace();
    CHECK_THAT(apply_template(base.value(), request).error().message(),
               Catch::Contains("networkPolicy"));
}
