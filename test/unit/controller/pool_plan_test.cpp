#include "controller/plan/pool_plan.hpp"

#include "runtime/kubernetes/names.hpp"
#include "runtime/kubernetes/observed/allocation.hpp"
#include "unit/runtime/kubernetes/objects.hpp"

using namespace opensandbox;
using namespace opensandbox::controller;
using namespace opensandbox::runtime::kubernetes;
using test_support::at;
using test_support::batch_of;
using test_support::pod_of;
using test_support::yaml_object;

namespace {

const Timestamp kNow = at("2026-01-01T01:00:00Z");

Pool pool(int buffer_min, int buffer_max, int pool_min, int pool_max,
          const std::string& more = "scaleStrategy: {maxUnavailable: \"100%\"}") {
    auto read = read_pool(yaml_object(
        "metadata: {name: p, namespace: s, uid: up}\nspec: {template: {spec: {containers: []}}, "
        "capacitySpec: {bufferMin: " +
        std::to_string(buffer_min) + ", bufferMax: " + std::to_string(buffer_max) + ", poolMin: " +
        std::to_string(pool_min) + ", poolMax: " + std::to_string(pool_max) + "}, " + more + "}"));
    REQUIRE(read);
    return *read;
}

struct Look {
    std::string claimed_by;
    bool ready = true;
    bool evict = false;
    std::string revision = "r";
};

PodPointer pod(const std::string& name, const Look& look = {}) {
    std::string text = "metadata: {name: " + name + ", namespace: s, uid: u" + name +
                       ", creationTimestamp: \"2026-01-01T00:00:00Z\", labels: "
                       "{sandbox.opensandbox.io/pool-name: p, "
                       "sandbox.opensandbox.io/pool-revision: " +
                       look.revision + (look.evict ? ", pool.opensandbox.io/evict: now" : "") + "}";
    if (!look.claimed_by.empty())
        text += ", annotations: {opensandbox.io/claimed-by: \"" + look.claimed_by + "\"}";
    text += "}\nspec: {nodeName: n}\nstatus: {podIP: 10.0.0.1, phase: ";
    text += look.ready ? "Running, conditions: [{type: Ready, status: \"True\"}]}" : "Pending}";
    return std::make_shared<const Pod>(pod_of(text));
}

BatchPointer batch(const std::string& name, int replicas, const std::string& allocated = "",
                   const std::string& metadata = "") {
    std::string text = "metadata: {name: " + name +
                       ", namespace: s, uid: u, creationTimestamp: "
                       "\"2026-01-01T00:00:00Z\"" +
                       metadata;
    if (!allocated.empty())
        text += ", annotations: {sandbox.opensandbox.io/alloc-status: '{\"pods\":[" + allocated +
                "]}'}";
    return std::make_shared<const BatchSandbox>(
        batch_of(text + "}\nspec: {replicas: " + std::to_string(replicas) + ", poolRef: p}"));
}

PoolPlan plan(const Pool& of, const std::vector<PodPointer>& pods,
              const std::vector<BatchPointer>& batches = {}) {
    return plan_pool(of, pods, batches, "r", kNow);
}

}  // namespace

TEST_CASE("pool plan: the buffer is filled to its middle, within the pool") {
    CHECK(plan(pool(2, 6, 0, 10), {}).create == 4);
    CHECK(plan(pool(2, 6, 5, 10), {}).create == 5);
    CHECK(plan(pool(2, 6, 0, 3), {}).create == 3);
    CHECK(plan(pool(2, 6, 0, 10), {pod("a"), pod("b")}).create == 0);
    CHECK(plan(pool(0, 0, 0, 0), {}).create == 0);
}

TEST_CASE("pool plan: no more at once than may be unavailable") {
    const std::string half = "scaleStrategy: {maxUnavailable: \"50%\"}";
    CHECK(plan(pool(8, 8, 0, 10, half), {}).create == 4);
    CHECK(plan(pool(8, 8, 0, 10, half),
               {pod("a", {.ready = false}), pod("b", {.ready = false}), pod("c", {.ready = false})})
              .create == 1);
    CHECK(plan(pool(8, 8, 0, 10, "scaleStrategy: {maxUnavailable: 3}"), {}).create == 3);
}

TEST_CASE("pool plan: too many idle ones go, those that are somebody's stay") {
    const auto surplus =
        plan(pool(1, 1, 0, 10),
             {pod("a"), pod("b"), pod("c", {.claimed_by = "x/w/2026-01-01T00:59:59Z"})},
             {batch("x", 1, "\"c\"")});
    REQUIRE(surplus.remove.size() == 1);
    CHECK(surplus.remove[0]->metadata.name == "a");
    CHECK(surplus.create == 0);
}

TEST_CASE("pool plan: sandboxes get pods in the order in which they were made") {
    const auto first = batch("a", 2);
    const auto later = std::make_shared<const BatchSandbox>(batch_of(
        "metadata: {name: A, namespace: s, uid: u2, creationTimestamp: \"2026-01-01T00:00:01Z\"}\n"
        "spec: {replicas: 2, poolRef: p}"));
    const auto made = plan(pool(0, 0, 0, 10), {pod("x"), pod("y"), pod("z")}, {later, first});
    REQUIRE(made.grants.size() == 2);
    CHECK(made.grants[0].batch->metadata.name == "a");
    CHECK(made.grants[0].pods.size() == 2);
    CHECK(made.grants[1].pods.size() == 1);
    CHECK(made.create == 1);
    CHECK_FALSE(made.is_full);
    CHECK(plan(pool(0, 0, 0, 3), {pod("x"), pod("y"), pod("z")}, {later, first}).is_full);
}

TEST_CASE("pool plan: a claim that is not written down counts as given") {
    const auto made =
        plan(pool(0, 0, 0, 10), {pod("x", {.claimed_by = "a/w/2026-01-01T00:59:59Z"}), pod("y")},
             {batch("a", 1)});
    REQUIRE(made.grants.size() == 1);
    REQUIRE(made.grants[0].pods.size() == 1);
    CHECK(made.grants[0].pods[0]->metadata.name == "x");
}

TEST_CASE("pool plan: a lost pod is replaced in its place") {
    const auto made = plan(pool(0, 0, 0, 10), {pod("y"), pod("z")}, {batch("a", 2, "\"x\",\"y\"")});
    REQUIRE(made.grants.size() == 1);
    CHECK(made.grants[0].lost == std::vector<std::string>{"x"});
    REQUIRE(made.grants[0].pods.size() == 1);
    CHECK(made.grants[0].pods[0]->metadata.name == "z");
}

TEST_CASE("pool plan: claims without a sandbox end after half a minute") {
    const auto old = pod("x", {.claimed_by = "gone/w/2026-01-01T00:59:00Z"});
    const auto fresh = pod("y", {.claimed_by = "gone/w/2026-01-01T00:59:45Z"});
    const auto made = plan(pool(0, 0, 0, 10), {old, fresh});
    REQUIRE(made.remove.size() == 1);
    CHECK(made.remove[0]->metadata.name == "x");
    REQUIRE(made.again);
    CHECK(*made.again <= std::chrono::seconds(15));
}

TEST_CASE("pool plan: a sandbox that is deleted gives its pods back, and they go") {
    const auto going = batch("a", 1, "\"x\"",
                             ", deletionTimestamp: \"2026-01-01T00:59:59Z\", finalizers: "
                             "[pool.sandbox.opensandbox.io/pool-allocation]");
    const auto made = plan(pool(0, 0, 0, 10), {pod("x")}, {going});
    REQUIRE(made.releases.size() == 1);
    REQUIRE(made.releases[0].pods.size() == 1);
    CHECK(made.grants.empty());
}

TEST_CASE("pool plan: pods of an older template go within the budget, evicted ones at once") {
    const Look old{.revision = "older"};
    const auto made = plan(pool(4, 4, 0, 10, "updateStrategy: {maxUnavailable: \"25%\"}"),
                           {pod("a", old), pod("b", old), pod("c", old), pod("d", old)});
    CHECK(made.remove.size() == 1);
    const auto evicted = plan(pool(1, 1, 0, 10), {pod("a", {.evict = true})});
    REQUIRE(evicted.remove.size() == 1);
    CHECK(evicted.create == 1);
}

TEST_CASE("pool plan: what it says of itself") {
    const auto made =
        plan(pool(0, 5, 0, 10), {pod("x"), pod("y", {.ready = false})}, {batch("a", 1, "\"z\"")});
    REQUIRE(made.status);
    CHECK(made.status->total == 2);
    CHECK(made.status->updated == 2);
    CHECK(made.status->revision == "r");
}

TEST_CASE("pool plan: a template's digest does not know the order of members") {
    const auto digest = [](const char* text) {
        Pool made;
        made.pod_template = yaml_object(text);
        return template_digest(made);
    };
    CHECK(digest("spec: {a: 1, b: [x, y]}") == digest("spec: {b: [x, y], a: 1}"));
    CHECK(digest("spec: {b: [x, y]}") != digest("spec: {b: [y, x]}"));
}

TEST_CASE("allocation: annotations that cannot be read decide nothing") {
    kube::Metadata metadata;
    CHECK(allocated_pods(metadata)->empty());
    metadata.annotations[std::string(annotation::kAllocated)] = R"({"pods":["a","b"]})";
    metadata.annotations[std::string(annotation::kRelease)] = R"({"pods":["a"]})";
    CHECK(*allocated_pods(metadata) == std::vector<std::string>{"b"});
    metadata.annotations[std::string(annotation::kRelease)] = "nonsense";
    CHECK_FALSE(allocated_pods(metadata));
    metadata.annotations[std::string(annotation::kClaimedBy)] = "id/who/2026-01-01T00:00:00Z";
    CHECK(claim_of(metadata).sandbox == "id");
    CHECK(claim_of(metadata).since == at("2026-01-01T00:00:00Z"));
}
