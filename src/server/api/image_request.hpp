#pragma once

#include "image/derivation.hpp"
#include "model/field_error.hpp"

#include <string>
#include <string_view>
#include <variant>

namespace opensandbox::server {

/// A name for an image to be made, and what is different in its config.
struct NamedImage {
    NamedImage() = default;
    std::string source;  ///< of POST /images/tag only
    std::string reference;
    image::ConfigChange change;
};

/// POST /snapshots/{id}/image.
std::variant<NamedImage, model::FieldErrors> parse_snapshot_image(std::string_view body);
/// POST /images/tag.
std::variant<NamedImage, model::FieldErrors> parse_image_tag(std::string_view body);

}  // namespace opensandbox::server
