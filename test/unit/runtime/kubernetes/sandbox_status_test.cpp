#include "runtime/kubernetes/observed/sandbox_status.hpp"

#include "unit/runtime/kubernetes/objects.hpp"

using namespace opensandbox;
using namespace opensandbox::runtime::kubernetes;
using model::SandboxState;
using test_support::at;
using test_support::batch_of;
using test_support::pod_of;

namespace {

BatchSandbox batch(const std::string& status, const std::string& more = "") {
    return batch_of("metadata: {name: b, uid: u, creationTimestamp: \"2026-01-01T00:00:00Z\"" +
                    more + "}\nspec: {replicas: 1}\nstatus: " + status);
}

const char* const kRunning = R"(
metadata: {name: b-0, uid: p}
spec: {nodeName: n}
status:
  phase: Running
  podIP: 10.0.0.1
  conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-01-01T00:00:05Z"}]
)";

}  // namespace

TEST_CASE("sandbox status: phases are states, with the time of their conditions") {
    const auto paused = sandbox_status(
        batch("{phase: Paused, conditions: [{type: Paused, status: \"True\", lastTransitionTime: "
              "\"2026-01-01T00:01:00Z\"}]}"),
        nullptr, false);
    CHECK(paused.state == SandboxState::paused);
    CHECK(paused.last_transition_at == at("2026-01-01T00:01:00Z"));
    CHECK(sandbox_status(batch("{phase: Pausing}"), nullptr, false).state == SandboxState::pausing);
    CHECK(sandbox_status(batch("{phase: Resuming}"), nullptr, false).state ==
          SandboxState::resuming);
    const auto succeed = sandbox_status(
        batch("{phase: Succeed, conditions: [{type: Ready, status: \"True\", lastTransitionTime: "
              "\"2026-01-01T00:00:09Z\"}]}"),
        nullptr, false);
    CHECK(succeed.state == SandboxState::running);
    CHECK(succeed.last_transition_at == at("2026-01-01T00:00:09Z"));
    const auto failed = sandbox_status(
        batch("{phase: Failed, conditions: [{type: PodFailed, status: \"True\", reason: OOMKilled, "
              "message: out of memory}]}"),
        nullptr, false);
    CHECK(failed.state == SandboxState::failed);
    CHECK(failed.reason == "OOMKilled");
    CHECK(failed.message == "out of memory");
    CHECK(sandbox_status(batch("{taskFailed: 1}"), nullptr, false).reason == "TASK_FAILED");
}

TEST_CASE("sandbox status: one that is being deleted stops, whatever else it says") {
    const auto going = batch("{phase: Succeed}", ", deletionTimestamp: \"2026-01-02T00:00:00Z\"");
    const Pod pod = pod_of(kRunning);
    CHECK(sandbox_status(going, &pod, true).state == SandboxState::stopping);
}

TEST_CASE("sandbox status: an agent that answered runs before the controller has said so") {
    const Pod pod = pod_of(kRunning);
    const BatchSandbox fresh = batch("{}");
    CHECK(sandbox_status(fresh, &pod, false).state == SandboxState::pending);
    CHECK(sandbox_status(fresh, &pod, false).reason == "IP_ASSIGNED");
    const auto running = sandbox_status(fresh, &pod, true);
    CHECK(running.state == SandboxState::running);
    CHECK(running.last_transition_at == at("2026-01-01T00:00:05Z"));
}

TEST_CASE("sandbox status: what a pod waits for is said") {
    const BatchSandbox fresh = batch("{}");
    CHECK(sandbox_status(fresh, nullptr, false).reason == "BATCHSANDBOX_PENDING");
    const Pod unplaced = pod_of(
        "metadata: {name: p}\nstatus: {phase: Pending, conditions: [{type: PodScheduled, status: "
        "\"False\", reason: Unschedulable, message: no room}]}");
    CHECK(sandbox_status(fresh, &unplaced, false).reason == "POD_UNSCHEDULABLE");
    CHECK(sandbox_status(fresh, &unplaced, false).message == "no room");
    const Pod pulling = pod_of(
        "metadata: {name: p}\nstatus: {phase: Pending, containerStatuses: [{name: sandbox, state: "
        "{waiting: {reason: ErrImagePull, message: i/o timeout}}}]}");
    CHECK(sandbox_status(fresh, &pulling, false).state == SandboxState::pending);
    CHECK(sandbox_status(fresh, &pulling, false).reason == "ErrImagePull");
    const Pod absent = pod_of(
        "metadata: {name: p}\nstatus: {phase: Pending, containerStatuses: [{name: sandbox, state: "
        "{waiting: {reason: ErrImagePull, message: not found}}}]}");
    CHECK(sandbox_status(fresh, &absent, false).state == SandboxState::failed);
    const BatchSandbox refused = batch(
        "{phase: Pending, conditions: [{type: Progressing, status: \"True\", reason: FailedCreate, "
        "message: exceeded quota}]}");
    CHECK(sandbox_status(refused, nullptr, false).reason == "POD_CREATE_FAILED");
    const BatchSandbox full = batch(
        "{phase: Pending, conditions: [{type: PoolAllocationPending, status: \"True\", message: "
        "full}]}");
    CHECK(sandbox_status(full, nullptr, false).reason == "POOL_CAPACITY_EXHAUSTED");
}

TEST_CASE("sandbox status: an entrypoint that ended well ends the sandbox") {
    const Pod pod = pod_of(
        "metadata: {name: p}\nstatus: {phase: Succeeded, containerStatuses: [{name: sandbox, "
        "state: "
        "{terminated: {exitCode: 0, finishedAt: \"2026-01-01T00:05:00Z\"}}}]}");
    const auto ended = sandbox_status(batch("{phase: Succeed}"), &pod, true);
    CHECK(ended.state == SandboxState::terminated);
    CHECK(ended.last_transition_at == at("2026-01-01T00:05:00Z"));
}

TEST_CASE("batch sandbox: what is read is written again") {
    const BatchSandbox read = batch_of(R"(
metadata: {name: b, uid: u, generation: 3, annotations: {sandbox.opensandbox.io/endpoints: '["10.0.0.1",""]'}}
spec: {replicas: 2, poolRef: p, pause: false, expireTime: "2030-01-01T00:00:00Z", shardPatches: [{}], template: {spec: {}}}
status: {observedGeneration: 2, replicas: 2, allocated: 1, ready: 1, phase: Pending, pauseObservedGeneration: 1,
         conditions: [{type: Progressing, status: "True", reason: Creating, lastTransitionTime: "2026-01-01T00:00:00Z"}]}
)");
    CHECK(read.replicas == 2);
    CHECK(read.pool == "p");
    CHECK(read.pause == false);
    CHECK(read.shard_patches.size() == 1);
    CHECK(endpoints_of(read) == std::vector<std::string>{"10.0.0.1", ""});
    const json::object written = write_batch_status(read.status);
    CHECK(written.at("taskPending") == 0);
    CHECK(written.at("phase").as_string() == "Pending");
    json::object object{{"metadata", json::object{{"name", "b"}}}};
    object["status"] = written;
    const auto again = read_batch_sandbox(object);
    REQUIRE(again);
    CHECK(again->status == read.status);
}

TEST_CASE("batch sandbox: what is no such object is refused by its member") {
    const auto refusal = [](const char* text) {
        const auto read = read_batch_sandbox(
            test_support::yaml_object("metadata: {name: b}\n" + std::string(text)));
        return read ? std::string() : read.error().message();
    };
    CHECK(refusal("spec: {replicas: many}").find("replicas") != std::string::npos);
    CHECK(refusal("spec: 1").find("spec") != std::string::npos);
    CHECK(refusal("status: {conditions: 1}").find("conditions") != std::string::npos);
    CHECK(refusal("spec: {shardPatches: {}}").find("shardPatches") != std::string::npos);
    CHECK(refusal("spec: {}").empty());
    CHECK(refusal("spec: {template: null, pause: null}").empty());
}
