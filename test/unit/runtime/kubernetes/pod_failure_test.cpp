#include "runtime/kubernetes/observed/pod_failure.hpp"

#include "unit/runtime/kubernetes/objects.hpp"

using namespace opensandbox;
using namespace opensandbox::runtime::kubernetes;
using test_support::pod_of;

namespace {

Pod waiting(const std::string& reason, const std::string& message = "") {
    return pod_of(
        "metadata: {name: p}\nstatus: {phase: Pending, containerStatuses: [{name: sandbox, "
        "state: {waiting: {reason: " +
        reason + ", message: \"" + message + "\"}}}]}");
}

}  // namespace

TEST_CASE("pod failure: what a container waits for tells whether waiting helps") {
    using Kind = PodFailure::Kind;
    const auto kind_of = [](const Pod& pod) { return failure_of(pod).value().kind; };
    CHECK(kind_of(waiting("CrashLoopBackOff")) == Kind::terminal);
    CHECK(kind_of(waiting("InvalidImageName")) == Kind::terminal);
    CHECK(kind_of(waiting("ErrImageNeverPull")) == Kind::terminal);
    CHECK(kind_of(waiting("ErrImagePull", "dial tcp: i/o timeout")) == Kind::stuck);
    CHECK(kind_of(waiting("ImagePullBackOff", "Back-off pulling image")) == Kind::stuck);
    CHECK(kind_of(waiting("ErrImagePull", "registry/x:1: not found")) == Kind::terminal);
    CHECK(kind_of(waiting("ErrImagePull", "401 Unauthorized: authentication required")) ==
          Kind::terminal);
    CHECK(kind_of(waiting("CreateContainerConfigError")) == Kind::passing);
    CHECK_FALSE(failure_of(waiting("ContainerCreating")));
    CHECK_FALSE(failure_of(waiting("PodInitializing")));
}

TEST_CASE("pod failure: init containers count") {
    const auto failure = failure_of(pod_of(
        "metadata: {name: p}\nstatus: {phase: Pending, initContainerStatuses: [{name: "
        "execd-installer, state: {waiting: {reason: ErrImageNeverPull, message: absent}}}]}"));
    REQUIRE(failure);
    CHECK(failure->reason == "ErrImageNeverPull");
    CHECK(failure->message == "container execd-installer: ErrImageNeverPull: absent");
}

TEST_CASE("pod failure: how containers ended is said") {
    const auto failure = failure_of(
        pod_of("metadata: {name: p}\nstatus: {phase: Failed, containerStatuses: [{name: sandbox, "
               "state: {terminated: {exitCode: 137, reason: OOMKilled}}}]}"));
    REQUIRE(failure);
    CHECK(failure->kind == PodFailure::Kind::terminal);
    CHECK(failure->reason == "OOMKilled");
    CHECK(failure->message == "container sandbox ended with exit code 137 (OOMKilled)");
    const auto init = failure_of(
        pod_of("metadata: {name: p}\nstatus: {phase: Failed, initContainerStatuses: [{name: i, "
               "state: {terminated: {exitCode: 2, reason: Error}}}]}"));
    CHECK(init.value().reason == "InitContainerFailed");
    CHECK(failure_of(pod_of("metadata: {name: p}\nstatus: {phase: Failed}"))->reason ==
          "PodFailed");
    CHECK_FALSE(failure_of(pod_of("metadata: {name: p}\nstatus: {phase: Succeeded}")));
}

TEST_CASE("pod failure: what a node did not take may run on another") {
    const auto failure = failure_of(
        pod_of("metadata: {name: p}\nstatus: {phase: Failed, reason: OutOfcpu, message: full}"));
    REQUIRE(failure);
    CHECK(failure->kind == PodFailure::Kind::stuck);
    CHECK(failure->message == "full");
}

TEST_CASE("pod failure: the scheduler's sentence") {
    CHECK(why_unschedulable(pod_of(
              "metadata: {name: p}\nstatus: {conditions: [{type: PodScheduled, "
              "status: \"False\", reason: Unschedulable, message: no room}]}")) == "no room");
    CHECK(why_unschedulable(pod_of("metadata: {name: p}")).empty());
}
