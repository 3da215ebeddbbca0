#pragma once

#include "json/document.hpp"

namespace opensandbox::kube {

/// Applies a JSON merge patch (RFC 7386): objects are merged, null deletes a member, anything else
/// stands for what was there.
void apply_merge_patch(json::value& target, const json::value& patch);

/// The smallest patch that makes `to` of `from`: null for members that go, lists as a whole, {} of
/// two objects that are alike. Members of `to` that are null are not there afterwards: a merge
/// patch cannot say them.
json::value make_merge_patch(const json::value& from, const json::value& to);

}  // namespace opensandbox::kube
