#pragma once

#include <algorithm>
#include <string_view>

namespace opensandbox::kube {

/// What errors say of a token that is none.
constexpr const char* kTokenRule = "must be visible ASCII characters";

/// Whether a text can stand behind "Bearer " in a header.
constexpr bool is_bearer_token(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace opensandbox::kube
