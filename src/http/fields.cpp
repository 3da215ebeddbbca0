#include "http/fields.hpp"

#include <algorithm>

namespace opensandbox::http {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::string_view trim(std::string_view text) {
    auto first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
               return x == y || lower(x) == lower(y);
           });
}

void Fields::add(std::string name, std::string value) {
    entries_.emplace_back(std::move(name), std::move(value));
}

void Fields::set(std::string_view name, std::string value) {
    auto same = [name](const Entry& entry) { return equal_ignoring_case(entry.first, name); };
    auto first = std::find_if(entries_.begin(), entries_.end(), same);
    if (first == entries_.end()) {
        entries_.emplace_back(std::string(name), std::move(value));
        return;
    }
    first->second = std::move(value);
    entries_.erase(std::remove_if(first + 1, entries_.end(), same), entries_.end());
}

std::size_t Fields::erase(std::string_view name) {
    return std::erase_if(
        entries_, [name](const Entry& entry) { return equal_ignoring_case(entry.first, name); });
}

std::optional<std::string_view> Fields::get(std::string_view name) const {
    for (const auto& [key, value] : entries_) {
        if (equal_ignoring_case(key, name)) return value;
    }
    return std::nullopt;
}

bool Fields::has_token(std::string_view name, std::string_view token) const {
    for (const auto& [key, value] : entries_) {
        if (!equal_ignoring_case(key, name)) continue;
        std::string_view rest = value;
        while (!rest.empty()) {
            auto comma = rest.find(',');
            if (equal_ignoring_case(trim(rest.substr(0, comma)), token)) return true;
            rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
        }
    }
    return false;
}

}  // namespace opensandbox::http
