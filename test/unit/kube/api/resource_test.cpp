#include "kube/api/resource.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox::kube;

TEST_CASE("objects lie below their group, version and namespace") {
    CHECK(collection_path(kPods, "a") == "/api/v1/namespaces/a/pods");
    CHECK(collection_path(kPods, "") == "/api/v1/pods");
    CHECK(collection_path(kNamespaces, "a") == "/api/v1/namespaces");
    CHECK(object_path(kLeases, {"a", "b"}) == "/apis/coordination.k8s.io/v1/namespaces/a/leases/b");
    CHECK(object_path(kPods, {"a", "b"}, "status") == "/api/v1/namespaces/a/pods/b/status");
    CHECK(object_path(kPods, {"a/b", "c d"}) == "/api/v1/namespaces/a%2Fb/pods/c%20d");
    CHECK(api_version(kPods) == "v1");
    CHECK(api_version(kLeases) == "coordination.k8s.io/v1");
    CHECK(to_string(ObjectKey{"a", "b"}) == "a/b");
    CHECK(to_string(ObjectKey{"", "b"}) == "b");
}
