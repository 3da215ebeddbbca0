#include "image/entry_path.hpp"

#include "image/budget.hpp"

namespace opensandbox::image {
namespace {

constexpr std::string_view kWhiteoutPrefix = ".wh.";
constexpr std::string_view kOpaqueName = ".wh..wh..opq";
constexpr std::string_view kMetadataPrefix = ".wh..wh.";
constexpr std::size_t kLongestName = 255;
constexpr std::size_t kLongestPath = 4095;

}  // namespace

Error broken_rule(std::string_view entry, std::string_view rule) {
    return {ErrorCode::invalid_argument, "entry " + in_quotes(entry) + ": " + std::string(rule)};
}

Result<EntryPath> parse_entry_path(std::string_view raw) {
    if (raw.empty()) return broken_rule(raw, "the name must not be empty");
    if (raw.front() == '/') return broken_rule(raw, "the name must not be absolute");
    if (raw.find('\0') != std::string_view::npos) {
        return broken_rule(raw, "the name must not hold NUL");
    }
    if (raw.size() > kLongestPath) {
        return broken_rule(raw, "the name must not be longer than 4095 bytes");
    }
    std::string_view whole = raw;
    EntryPath path;
    while (!raw.empty()) {
        std::string_view component = raw.substr(0, raw.find('/'));
        raw.remove_prefix(std::min(raw.size(), component.size() + 1));
        if (component.empty() || component == ".") continue;
        if (component == "..") return broken_rule(whole, "the name must not contain \"..\"");
        if (component.size() > kLongestName) {
            return broken_rule(whole, "a file name must not be longer than 255 bytes");
        }
        if (!path.name.empty()) {
            if (whiteout_of(path.name) != Whiteout::none) {
                return broken_rule(whole, "nothing can lie below a whiteout");
            }
            path.parent = path.full();
        }
        path.name = component;
    }
    return path;
}

Whiteout whiteout_of(std::string_view name) {
    if (!name.starts_with(kWhiteoutPrefix)) return Whiteout::none;
    if (name == kOpaqueName) return Whiteout::opaque;
    return name.starts_with(kMetadataPrefix) ? Whiteout::metadata : Whiteout::file;
}

std::string_view whiteout_target(std::string_view name) {
    return name.substr(kWhiteoutPrefix.size());
}

}  // namespace opensandbox::image
