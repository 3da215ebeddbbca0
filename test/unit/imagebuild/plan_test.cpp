#include "imagebuild/plan.hpp"

#include "support/catch_result.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::imagebuild;

namespace {

Dockerfile parsed(std::string_view text) {
    auto file = parse_dockerfile(text, "Dockerfile");
    REQUIRE(file);
    return std::move(*file);
}

std::vector<std::size_t> stages_of(const Plan& plan) {
    std::vector<std::size_t> out;
    for (const auto& stage : plan.stages)
        out.push_back(stage.index);
    return out;
}

std::string image_of(const PlannedStage& stage) {
    const auto* image = std::get_if<ImageSource>(&stage.base);
    REQUIRE(image);
    return image->reference;
}

using Stages = std::vector<std::size_t>;

constexpr std::string_view kFour =
    "FROM a AS one\nFROM b AS two\nCOPY --from=one /x /x\nFROM c AS three\nFROM two\nRUN y\n";

}  // namespace

TEST_CASE("only the stages that the target needs are built, in order") {
    const Dockerfile file = parsed(kFour);
    CHECK(stages_of(*make_plan(file, {}, "")) == Stages{0, 1, 3});
    CHECK(stages_of(*make_plan(file, {}, "three")) == Stages{2});
    CHECK(stages_of(*make_plan(file, {}, "TWO")) == Stages{0, 1});
    CHECK(stages_of(*make_plan(file, {}, "0")) == Stages{0});
}

TEST_CASE("an unknown target names those that there are") {
    auto plan = make_plan(parsed(kFour), {}, "four");
    REQUIRE(!plan);
    CHECK(plan.error().message().find("one, two, three") != std::string::npos);
}

TEST_CASE("a base is a stage before, else an image") {
    auto plan = make_plan(parsed("FROM x AS base\nFROM base\n"), {}, "");
    REQUIRE(plan);
    CHECK(image_of(plan->stages[0]) == "x");
    REQUIRE(std::get_if<StageSource>(&plan->stages[1].base));
    // A stage after it is none of its bases.
    plan = make_plan(parsed("FROM later\nFROM y AS later\n"), {}, "0");
    REQUIRE(plan);
    CHECK(image_of(plan->stages[0]) == "later");
}

TEST_CASE("arguments before FROM choose the base") {
    const Dockerfile file = parsed("ARG V=1\nARG IMAGE=box:${V}\nFROM ${IMAGE:-none}\n");
    CHECK(image_of(make_plan(file, {}, "")->stages[0]) == "box:1");
    CHECK(image_of(make_plan(file, {{"V", "2"}}, "")->stages[0]) == "box:2");
    auto empty = make_plan(parsed("ARG V\nFROM $V\n"), {}, "");
    REQUIRE(!empty);
    CHECK(empty.error().message().find("Dockerfile:2: FROM: ") == 0);
}

TEST_CASE("--from names an earlier stage by name or number, or an image") {
    const Dockerfile file = parsed(kFour);
    CHECK(std::get<StageSource>(*resolve_source(file, "One", 1)).index == 0);
    CHECK(std::get<StageSource>(*resolve_source(file, "0", 1)).index == 0);
    CHECK(std::get<ImageSource>(*resolve_source(file, "busybox:1", 1)).reference == "busybox:1");
    CHECK(!resolve_source(file, "1", 1));
    CHECK(!resolve_source(file, "three", 1));
    CHECK(!resolve_source(file, "$x", 1));
    CHECK(!resolve_source(file, "scratch", 1));
}
