#include "controller/plan/batch_plan.hpp"

#include "controller/plan/pod_document.hpp"
#include "runtime/kubernetes/names.hpp"
#include "unit/runtime/kubernetes/objects.hpp"

using namespace opensandbox;
using namespace opensandbox::controller;
using namespace opensandbox::runtime::kubernetes;
using test_support::at;
using test_support::batch_of;
using test_support::pod_of;

namespace {

const Timestamp kBorn = at("2026-01-01T00:00:00Z");

BatchSandbox batch(int replicas, const std::string& status = "{}", const std::string& spec = "") {
    return batch_of(
        "metadata: {name: b, namespace: s, uid: u, generation: 1, creationTimestamp: "
        "\"2026-01-01T00:00:00Z\"}\nspec: {replicas: " +
        std::to_string(replicas) + ", template: {spec: {containers: []}}" + spec +
        "}\nstatus: " + status);
}

PodPointer pod(int index, const std::string& status, const std::string& metadata = "") {
    const std::string name = "b-" + std::to_string(index);
    return std::make_shared<const Pod>(
        pod_of("metadata: {name: " + name + ", namespace: s, uid: uid" + std::to_string(index) +
               metadata + "}\nspec: {nodeName: n}\nstatus: " + status));
}

PodPointer ready(int index) {
    return pod(index, "{phase: Running, podIP: 10.0.0." + std::to_string(index) +
                          ", conditions: [{type: Ready, status: \"True\"}]}");
}

PodPointer pulling(int index, const std::string& metadata = "") {
    return pod(index,
               "{phase: Pending, containerStatuses: [{name: c, state: {waiting: {reason: "
               "ErrImagePull, message: timeout}}}]}",
               metadata);
}

struct Looked {
    BatchMemory memory;
    RecoverySettings recovery;
    Timestamp now = kBorn + std::chrono::seconds(10);

    BatchPlan operator()(const BatchSandbox& seen, const std::vector<PodPointer>& pods) {
        return plan_batch(seen, pods, recovery, memory, now);
    }
};

}  // namespace

TEST_CASE("batch plan: missing replicas are made, those too many go") {
    Looked look;
    CHECK(look(batch(3), {ready(1)}).create == std::vector<std::int64_t>{0, 2});
    const BatchPlan less = look(batch(1), {ready(0), ready(1), ready(4)});
    CHECK(less.create.empty());
    REQUIRE(less.remove.size() == 2);
    CHECK(less.remove[0].pod == "b-1");
    CHECK(less.remove[0].replaces_because.empty());
    CHECK(look(batch(0), {}).create.empty());
}

TEST_CASE("batch plan: many that are too many go a few at a time") {
    Looked look;
    std::vector<PodPointer> pods;
    for (int i = 0; i < 50; ++i)
        pods.push_back(ready(i));
    const BatchPlan plan = look(batch(0), pods);
    CHECK(plan.remove.size() == 20);
    REQUIRE(plan.again);
    CHECK(*plan.again <= std::chrono::seconds(1));
}

TEST_CASE("batch plan: a pod that is going still has its name") {
    Looked look;
    const auto going = pod(0, "{phase: Running}", ", deletionTimestamp: \"2026-01-01T00:00:05Z\"");
    const BatchPlan plan = look(batch(1), {going});
    CHECK(plan.create.empty());
    CHECK(plan.remove.empty());
}

TEST_CASE("batch plan: all replicas are ready before it says so") {
    Looked look;
    const BatchPlan some = look(batch(2), {ready(0), pulling(1)});
    REQUIRE(some.status);
    CHECK(some.status->phase == "Pending");
    CHECK(some.status->counters.ready == 1);
    CHECK(some.status->counters.replicas == 2);
    const BatchPlan all = look(batch(2), {ready(0), ready(1)});
    REQUIRE(all.status);
    CHECK(all.status->phase == "Succeed");
    REQUIRE(all.status->conditions.size() == 1);
    CHECK(all.status->conditions[0].type == "Ready");
    CHECK(all.endpoints == R"(["10.0.0.0","10.0.0.1"])");
    CHECK(all.endpoint_uids == R"(["uid0","uid1"])");
}

TEST_CASE("batch plan: what is written already is not written again") {
    Looked look;
    BatchSandbox seen = batch(1);
    const BatchPlan first = look(seen, {ready(0)});
    REQUIRE(first.status);
    seen.status = *first.status;
    seen.metadata.annotations[std::string(annotation::kEndpoints)] = *first.endpoints;
    look.now += std::chrono::seconds(60);
    const BatchPlan second = look(seen, {ready(0)});
    CHECK_FALSE(second.status);
    CHECK_FALSE(second.endpoints);
    CHECK_FALSE(second.again);
}

TEST_CASE("batch plan: one that comes up fast is never written down as Pending") {
    Looked look;
    look.now = kBorn + std::chrono::milliseconds(500);
    const BatchPlan early = look(batch(1), {pod(0, "{phase: Pending}")});
    CHECK_FALSE(early.status);
    REQUIRE(early.again);
    CHECK(*early.again <= std::chrono::seconds(3));
    look.now = kBorn + std::chrono::seconds(4);
    CHECK(look(batch(1), {pod(0, "{phase: Pending}")}).status.value().phase == "Pending");
}

TEST_CASE("batch plan: what changes all the time is written once a second, what turns at once") {
    Looked look;
    BatchSandbox seen = batch(3, "{phase: Pending}");
    look.memory.written = look.now - std::chrono::milliseconds(100);
    const BatchPlan waits = look(seen, {ready(0), pod(1, "{phase: Pending}"), pod(2, "{}")});
    CHECK_FALSE(waits.status);
    CHECK_FALSE(waits.endpoints);
    REQUIRE(waits.again);
    CHECK(*waits.again <= std::chrono::seconds(1));
    CHECK(look(seen, {ready(0), ready(1), ready(2)}).status);
}

TEST_CASE("batch plan: a pod that hangs is replaced, so often and not more often") {
    Looked look;
    look.recovery.max_attempts = 2;
    const BatchSandbox seen = batch(1, "{phase: Pending}");
    CHECK(look(seen, {pulling(0)}).remove.empty());
    look.now += std::chrono::seconds(59);
    CHECK(look(seen, {pulling(0)}).remove.empty());
    look.now += std::chrono::seconds(1);
    const BatchPlan first = look(seen, {pulling(0)});
    REQUIRE(first.remove.size() == 1);
    CHECK(first.remove[0].replaces_because == "ErrImagePull");
    CHECK(look.memory.replaced[0] == 1);
    // A controller that was started anew reads what its predecessor did from the pod.
    Looked another;
    another.recovery.max_attempts = 2;
    another.now = look.now;
    const auto second = pulling(0, ", annotations: {opensandbox.io/recovery-attempt: \"1\"}");
    CHECK(another(seen, {second}).remove.empty());
    another.now += std::chrono::seconds(60);
    CHECK(another(seen, {second}).remove.size() == 1);
    const auto third = pulling(0, ", annotations: {opensandbox.io/recovery-attempt: \"2\"}");
    const BatchPlan last = another(seen, {third});
    CHECK(last.remove.empty());
    REQUIRE(last.status);
    CHECK(last.status->phase == "Failed");
    CHECK(last.status->conditions[0].message.find("after 2 replacements") != std::string::npos);
}

TEST_CASE("batch plan: one that a node refused is replaced at once") {
    Looked look;
    const BatchSandbox seen = batch(1, "{phase: Pending}");
    const BatchPlan plan = look(seen, {pod(0, "{phase: Failed, reason: OutOfcpu}")});
    REQUIRE(plan.remove.size() == 1);
    CHECK(plan.remove[0].replaces_because == "OutOfcpu");
}

TEST_CASE("batch plan: a failure for good stays") {
    Looked look;
    const auto broken = pod(0,
                            "{phase: Failed, containerStatuses: [{name: c, state: {terminated: "
                            "{exitCode: 3}}}]}");
    const BatchPlan plan = look(batch(2), {broken, ready(1)});
    REQUIRE(plan.status);
    CHECK(plan.status->phase == "Failed");
    CHECK(plan.status->conditions[0].message.starts_with(
        "1/2 observed pods failed; primary reason=ContainerFailed; sample pod=b-0"));
    BatchSandbox failed = batch(2);
    failed.status = *plan.status;
    const BatchPlan later = look(failed, {ready(0), ready(1)});
    REQUIRE(later.status);
    CHECK(later.status->phase == "Failed");
    CHECK(later.status->conditions == plan.status->conditions);
}

TEST_CASE("batch plan: conditions of a pause that failed are carried over") {
    Looked look;
    const BatchPlan plan =
        look(batch(1,
                   "{phase: Succeed, conditions: [{type: PauseFailed, status: \"True\", reason: "
                   "SnapshotFailed}]}"),
             {ready(0)});
    REQUIRE(plan.status);
    REQUIRE(plan.status->conditions.size() == 2);
    CHECK(plan.status->conditions[1].type == "PauseFailed");
}

TEST_CASE("batch plan: expiry comes before all else") {
    Looked look;
    const std::string later = ", expireTime: \"2026-01-01T00:01:00Z\"";
    const BatchPlan plan = look(batch(1, "{phase: Succeed}", later), {ready(0)});
    CHECK_FALSE(plan.expire);
    REQUIRE(plan.again);
    CHECK(*plan.again <= std::chrono::seconds(50));
    look.now = kBorn + std::chrono::seconds(61);
    const BatchPlan over = look(batch(1, "{phase: Succeed}", later), {});
    CHECK(over.expire);
    CHECK(over.create.empty());
}

TEST_CASE("batch plan: those of pools, those that sleep and those that go are left alone") {
    Looked look;
    CHECK(look(batch(1, "{}", ", poolRef: p"), {}).create.empty());
    CHECK(look(batch(1, "{phase: Paused}"), {}).create.empty());
    BatchSandbox going = batch(1);
    going.metadata.deletion_time = look.now;
    CHECK(look(going, {}).create.empty());
}

TEST_CASE("pod document: the template with its owner, its labels and its patch") {
    const BatchSandbox seen = batch_of(R"(
metadata: {name: b, namespace: s, uid: u}
spec:
  replicas: 2
  template:
    metadata: {name: mine, labels: {a: b}}
    spec: {containers: [{name: main, image: x}]}
  shardPatches: [{spec: {containers: [{name: main, image: y}]}}, {spec: {$patch: explode}}]
)");
    const auto first = pod_document(seen, 0);
    REQUIRE(first);
    const json::value document = *first;
    CHECK(document.at_pointer("/metadata/name").as_string() == "b-0");
    CHECK(document.at_pointer("/metadata/labels/a").as_string() == "b");
    CHECK(document.at_pointer("/metadata/ownerReferences/0/controller") == true);
    CHECK(document.at_pointer("/spec/containers/0/image").as_string() == "y");
    const auto second = pod_document(seen, 1);
    REQUIRE_FALSE(second);
    CHECK(second.error().message().starts_with("spec.shardPatches[1]"));
    CHECK(pod_document(seen, 5));
    CHECK_FALSE(pod_document(batch_of("metadata: {name: b}\nspec: {replicas: 1}"), 0));
}

TEST_CASE("pod document: the index of a pod") {
    const auto index = [](const char* text) { return pod_index(pod_of(text).metadata); };
    CHECK(index("metadata: {name: b-7}") == 7);
    CHECK(index("metadata: {name: b-x}") == -1);
    CHECK(index("metadata: {name: b-1, labels: {batch-sandbox.sandbox.opensandbox.io/pod-index: "
                "\"3\"}}") == 3);
}

TEST_CASE("batch plan: what its tasks say comes with the first status") {
    Looked look;
    look.now = kBorn + std::chrono::milliseconds(500);
    BatchCounters tasks;
    tasks.task_pending = 1;
    const BatchSandbox seen = batch(1, "{}", ", poolRef: p");
    BatchSandbox pooled = seen;
    pooled.pod_template = nullptr;
    const auto plan = [&] {
        return plan_pooled(pooled, {ready(0)}, false, tasks, look.memory, look.now);
    };
    CHECK_FALSE(plan().status);
    CHECK(plan().again);
    tasks = BatchCounters();
    tasks.task_running = 1;
    REQUIRE(plan().status);
    CHECK(plan().status->phase == "Succeed");
    CHECK(plan().status->counters.task_running == 1);
    tasks = BatchCounters();
    tasks.task_unknown = 1;
    look.now = kBorn + std::chrono::seconds(4);
    CHECK(plan().status);
}

TEST_CASE("batch plan: a pool that is full is told of those that wait for it") {
    Looked look;
    BatchSandbox pooled = batch(2, "{phase: Pending}", ", poolRef: p");
    pooled.pod_template = nullptr;
    const BatchPlan waits = plan_pooled(pooled, {ready(0)}, true, {}, look.memory, look.now);
    REQUIRE(waits.status);
    REQUIRE(waits.status->conditions.size() == 2);
    CHECK(waits.status->conditions[1].type == "PoolAllocationPending");
    const BatchPlan served =
        plan_pooled(pooled, {ready(0), ready(1)}, true, {}, look.memory, look.now);
    REQUIRE(served.status);
    CHECK(served.status->phase == "Succeed");
    CHECK(served.status->conditions.size() == 1);
}
