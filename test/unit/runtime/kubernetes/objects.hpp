#pragma once

#include "json/yaml.hpp"
#include "runtime/kubernetes/observed/batch_sandbox.hpp"
#include "runtime/kubernetes/observed/pod.hpp"
#include "support/catch_result.hpp"

#include <string>
#include <string_view>

/// Objects of a cluster, as people write them.
namespace opensandbox::test_support {

inline json::object yaml_object(std::string_view text) {
    auto document = json::parse_yaml(text);
    REQUIRE(document);
    REQUIRE(document->is_object());
    return document->get_object();
}

inline runtime::kubernetes::Pod pod_of(std::string_view text) {
    auto pod = runtime::kubernetes::read_pod(yaml_object(text));
    REQUIRE(pod);
    return *pod;
}

inline runtime::kubernetes::BatchSandbox batch_of(std::string_view text) {
    auto batch = runtime::kubernetes::read_batch_sandbox(yaml_object(text));
    REQUIRE(batch);
    return *batch;
}

inline Timestamp at(std::string_view text) {
    return parse_rfc3339(text).value();
}

}  // namespace opensandbox::test_support
