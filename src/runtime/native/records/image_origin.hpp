#pragma once

#include "image/store.hpp"
#include "json/document.hpp"

#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// The image below a sandbox or a snapshot: enough to start from it again.
struct ImageOrigin {
    ImageOrigin() = default;
    std::string reference;            ///< as it was requested
    std::string digest;               ///< of what it named then
    std::vector<std::string> layers;  ///< directories, uppermost first
    std::string usr;                  ///< the host's /usr for the built-in image, else empty
    image::ImageConfig config;
};

/// An array of strings.
json::array to_json(const std::vector<std::string>& list);
json::object to_json(const ImageOrigin& origin);
/// invalid_argument names the member.
Result<ImageOrigin> parse_origin(const json::object& object);

}  // namespace opensandbox::runtime::native
