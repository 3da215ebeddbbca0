#pragma once

#include "json/document.hpp"

/// How an operator's template lies under what the server makes (kubernetes 3.1). Pure.
namespace opensandbox::runtime::kubernetes {

/// `over` on top of `base`: objects are merged member by member, lists and values of `over` replace
/// those below, and its nulls change nothing.
json::object merge_over(json::object base, const json::object& over);

/// The manifest of a workload on top of its template. Beyond merge_over() the template's volumes
/// are kept by name, and so are, of its container `sandbox` or else its first, the mounts, and each
/// leaf of the security context that the manifest does not set.
json::object merge_workload(const json::object& under, const json::object& manifest);

}  // namespace opensandbox::runtime::kubernetes
