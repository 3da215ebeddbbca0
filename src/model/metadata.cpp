#include "model/metadata.hpp"

#include "model/json_body.hpp"

#include <algorithm>

namespace opensandbox::model {
namespace {

constexpr std::size_t kMaxName = 63;
constexpr std::size_t kMaxPrefix = 253;

bool is_alphanumeric(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name(std::string_view text) {
    if (text.empty() || text.size() > kMaxName) return false;
    if (!is_alphanumeric(text.front()) || !is_alphanumeric(text.back())) return false;
    return std::ranges::all_of(
        text, [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_subdomain(std::string_view text) {
    if (text.empty() || text.size() > kMaxPrefix) return false;
    while (true) {
        auto dot = text.find('.');
        std::string_view part = text.substr(0, dot);
        if (part.empty() || part.front() == '-' || part.back() == '-') return false;
        bool plain = std::ranges::all_of(part, [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
        });
        if (!plain) return false;
        if (dot == std::string_view::npos) return true;
        text.remove_prefix(dot + 1);
    }
}

Error bad_label(std::string message) {
    return {ErrorCode::invalid_argument, "SANDBOX::INVALID_METADATA_LABEL", std::move(message)};
}

Error reserved(std::string wire, std::string_view key) {
    return {ErrorCode::invalid_argument, std::move(wire),
            "metadata: key '" + std::string(key) + "' uses the reserved prefix '" +
                std::string(kReservedPrefix) + "'; keys under it belong to the system."};
}

}  // namespace

bool is_reserved_key(std::string_view key) {
    return key.starts_with(kReservedPrefix);
}

bool is_label_value(std::string_view value) {
    return value.empty() || is_name(value);
}

bool is_label_key(std::string_view key) {
    auto slash = key.find('/');
    if (slash == std::string_view::npos) return is_name(key);
    return is_subdomain(key.substr(0, slash)) && is_name(key.substr(slash + 1));
}

Status check_label(std::string_view key, std::string_view value) {
    if (!is_label_key(key)) {
        return bad_label(
            "metadata: key '" + std::string(key) +
            "' must be a name, or a lower-case DNS subdomain of at most 253 characters, "
            "'/' and a name; a name has at most 63 letters, digits, '-', '_' and '.', and "
            "starts and ends with a letter or digit.");
    }
    if (!is_label_value(value)) {
        return bad_label(
            "metadata." + std::string(key) + ": value '" + std::string(value) +
            "' must have at most 63 letters, digits, '-', '_' and '.', and start and end "
            "with a letter or digit.");
    }
    return {};
}

Status check_labels(const StringMap& metadata) {
    for (const auto& [key, value] : metadata) {
        if (is_reserved_key(key)) return reserved("SANDBOX::INVALID_METADATA_LABEL", key);
        if (auto checked = check_label(key, value); !checked) return checked;
    }
    return {};
}

std::variant<MetadataPatch, FieldErrors> parse_metadata_patch(std::string_view body) {
    return parse_nullable_map(body);
}

Result<StringMap> apply(const MetadataPatch& patch, const StringMap& metadata) {
    StringMap merged = metadata;
    for (const auto& [key, value] : patch) {
        if (is_reserved_key(key)) return reserved("INVALID_METADATA_LABEL", key);
        auto at = std::ranges::find(merged, key, &StringMap::value_type::first);
        if (!value) {
            if (at != merged.end()) merged.erase(at);
            continue;
        }
        if (auto checked = check_label(key, *value); !checked) return checked.error();
        if (at != merged.end()) {
            at->second = *value;
        } else {
            merged.emplace_back(key, *value);
        }
    }
    return merged;
}

bool matches(const StringMap& filter, const StringMap& metadata) {
    return std::ranges::all_of(filter, [&](const auto& wanted) {
        return std::ranges::find(metadata, wanted) != metadata.end();
    });
}

}  // namespace opensandbox::model
