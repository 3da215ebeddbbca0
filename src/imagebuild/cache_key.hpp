#pragma once

#include <string>
#include <string_view>

namespace opensandbox::imagebuild {

/// Gathers what a step depends on, each part with its length, so that no two lists of parts are the
/// same text.
class CacheKey {
  public:
    CacheKey& add(std::string_view part);
    /// 64 hex digits.
    [[nodiscard]] std::string digest() const;

  private:
    std::string parts_;
};

/// Images of steps are kept under this name: "build-cache/<40 hex>:latest".
inline constexpr std::string_view kCachePrefix = "build-cache/";

std::string cache_reference(std::string_view digest);
/// Whether an image of the server is one of a build's steps.
bool is_cache_reference(std::string_view reference);

}  // namespace opensandbox::imagebuild
