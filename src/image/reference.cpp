#include "image/reference.hpp"

#include "base/digest.hpp"
#include "image/budget.hpp"

#include <algorithm>

namespace opensandbox::image {
namespace {

constexpr std::size_t kLongestName = 255;
constexpr std::size_t kLongestTag = 128;

bool is_lower_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool is_alphanumeric(char c) {
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

/// [a-z0-9]+ joined by one of ".", "_", "__" or any number of "-".
bool is_path_component(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size() && is_lower_or_digit(text[at])) {
        while (at < text.size() && is_lower_or_digit(text[at]))
            ++at;
        if (at == text.size()) return true;
        std::size_t start = at;
        while (at < text.size() && !is_lower_or_digit(text[at]))
            ++at;
        std::string_view separator = text.substr(start, at - start);
        bool dashes = separator.find_first_not_of('-') == std::string_view::npos;
        if (!dashes && separator != "." && separator != "_" && separator != "__") return false;
    }
    return false;
}

bool is_port(std::string_view text) {
    if (text.empty() || text.size() > 5) return false;
    unsigned value = 0;
    for (char c : text) {
        if (c < '0' || c > '9') return false;
        value = value * 10 + static_cast<unsigned>(c - '0');
    }
    return value >= 1 && value <= 65535;
}

bool is_domain_label(std::string_view label) {
    if (label.empty() || label.front() == '-' || label.back() == '-') return false;
    return std::ranges::all_of(label, [](char c) { return is_alphanumeric(c) || c == '-'; });
}

/// A host name or an IPv6 address in brackets, with an optional port.
bool is_registry(std::string_view text) {
    std::string_view host = text.substr(0, text.find(':'));
    if (text.starts_with('[')) {
        std::size_t close = text.find(']');
        if (close == std::string_view::npos || close < 3) return false;
        auto is_address = [](char c) {
            return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') ||
                   c == ':';
        };
        if (!std::ranges::all_of(text.substr(1, close - 1), is_address)) return false;
        text.remove_prefix(close + 1);
        return text.empty() || (text.front() == ':' && is_port(text.substr(1)));
    }
    if (host.size() < text.size() && !is_port(text.substr(host.size() + 1))) return false;
    while (true) {
        std::string_view label = host.substr(0, host.find('.'));
        if (!is_domain_label(label)) return false;
        if (label.size() == host.size()) return true;
        host.remove_prefix(label.size() + 1);
    }
}

/// The first component names a registry when it could not be part of a path (OCI practice).
bool looks_like_registry(std::string_view component) {
    return component == "localhost" || component.find_first_of(".:[") != std::string_view::npos ||
           std::ranges::any_of(component, [](char c) { return c >= 'A' && c <= 'Z'; });
}

Error broken_reference(std::string_view reference, std::string_view rule) {
    return {ErrorCode::invalid_argument,
            "image " + in_quotes(reference) + ": " + std::string(rule)};
}

Status check_name(std::string_view reference, std::string_view name) {
    if (name.empty()) return broken_reference(reference, "the name must not be empty");
    if (name.size() > kLongestName) {
        return broken_reference(reference, "the name must not be longer than 255 characters");
    }
    std::size_t slash = name.find('/');
    if (slash != std::string_view::npos && looks_like_registry(name.substr(0, slash))) {
        if (!is_registry(name.substr(0, slash))) {
            return broken_reference(reference,
                                    "the registry must be a host name with an optional port");
        }
        name.remove_prefix(slash + 1);
    }
    for (;;) {
        std::string_view component = name.substr(0, name.find('/'));
        if (!is_path_component(component)) {
            return broken_reference(
                reference,
                "each part of the name must be lower-case letters and digits, joined by "
                "\".\", \"_\", \"__\" or dashes");
        }
        if (component.size() == name.size()) return {};
        name.remove_prefix(component.size() + 1);
    }
}

bool is_tag(std::string_view tag) {
    if (tag.empty() || tag.size() > kLongestTag) return false;
    if (!is_alphanumeric(tag[0]) && tag[0] != '_') return false;
    return std::ranges::all_of(
        tag, [](char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '-'; });
}

}  // namespace

std::string Reference::text() const {
    if (!digest.empty()) return name + "@" + digest;
    return tag.empty() ? name : name + ":" + tag;
}

Result<Reference> parse_reference(std::string_view text) {
    Reference reference;
    std::string_view name = text;
    bool tagged = false;
    if (std::size_t at = name.find('@'); at != std::string_view::npos) {
        reference.digest = name.substr(at + 1);
        name = name.substr(0, at);
        if (digest_hex(reference.digest).empty()) {
            return broken_reference(text,
                                    "the digest must be \"sha256:\" and 64 lower-case hex digits");
        }
    }
    std::size_t slash = name.rfind('/');
    std::size_t colon = name.find(':', slash == std::string_view::npos ? 0 : slash);
    if (colon != std::string_view::npos) {
        tagged = true;
        reference.tag = name.substr(colon + 1);
        name = name.substr(0, colon);
        if (!is_tag(reference.tag)) {
            return broken_reference(
                text,
                "the tag must be 1 to 128 letters, digits, \"_\", \".\" or \"-\", the "
                "first neither \".\" nor \"-\"");
        }
        if (!reference.digest.empty()) {
            return broken_reference(text, "a tag and a digest must not stand together");
        }
    }
    if (auto status = check_name(text, name); !status) return status.error();
    reference.name = name;
    if (reference.is_host()) {
        if (!reference.digest.empty() || (tagged && reference.tag != "latest")) {
            return broken_reference(text, "\"host\" is the built-in image and has no other tags");
        }
        reference.tag.clear();
    } else if (!tagged && reference.digest.empty()) {
        reference.tag = "latest";
    }
    return reference;
}

Result<std::string> normalize_reference(std::string_view reference) {
    auto parsed = parse_reference(reference);
    if (!parsed) return parsed.error();
    return parsed->text();
}

}  // namespace opensandbox::image
