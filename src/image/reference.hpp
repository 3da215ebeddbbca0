#pragma once

#include "base/error.hpp"
#include "image/store.hpp"

#include <string>
#include <string_view>

namespace opensandbox::image {

inline constexpr std::string_view kHostReference = "host";

/// A checked reference. `host` has neither tag nor digest.
struct Reference {
    std::string name;    ///< with the registry host, when there is one
    std::string tag;     ///< empty when `digest` is set
    std::string digest;  ///< "sha256:<64 hex>": a particular image of that name

    [[nodiscard]] bool is_host() const { return name == kHostReference; }
    /// "name:tag", "name@sha256:…" or "host".
    [[nodiscard]] std::string text() const;
};

/// The rules of normalize_reference, with the parts kept apart.
Result<Reference> parse_reference(std::string_view text);

}  // namespace opensandbox::image
