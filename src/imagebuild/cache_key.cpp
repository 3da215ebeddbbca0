#include "imagebuild/cache_key.hpp"

#include "base/digest.hpp"

namespace opensandbox::imagebuild {
namespace {

constexpr std::size_t kDigits = 40;
/// Another meaning of the parts is another version: old images are then not taken.
constexpr std::string_view kVersion = "1";

}  // namespace

CacheKey& CacheKey::add(std::string_view part) {
    parts_ += std::to_string(part.size());
    parts_ += ':';
    parts_ += part;
    return *this;
}

std::string CacheKey::digest() const {
    return sha256_hex(std::string(kVersion) + "\n" + parts_);
}

std::string cache_reference(std::string_view digest) {
    return std::string(kCachePrefix) + std::string(digest.substr(0, kDigits)) + ":latest";
}

bool is_cache_reference(std::string_view reference) {
    return reference.starts_with(kCachePrefix);
}

}  // namespace opensandbox::imagebuild
