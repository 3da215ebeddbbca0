#include "agent/process/environment.hpp"

namespace opensandbox::agent {
namespace {

bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name_part(char c) {
    return is_name_start(c) || (c >= '0' && c <= '9');
}

/// Calls `replace` for every reference and copies all else.
template <class Replace>
std::string substitute(std::string_view text, Replace replace) {
    std::string out;
    out.reserve(text.size());
    std::size_t at = 0;
    while (at < text.size()) {
        if (text[at] != '$' || at + 1 == text.size()) {
            out += text[at++];
            continue;
        }
        std::size_t begin = at + 1;
        std::size_t end = begin;
        std::size_t next = begin;
        if (text[begin] == '{') {
            ++begin;
            end = text.find('}', begin);
            next = end == std::string_view::npos ? end : end + 1;
        } else {
            if (is_name_start(text[begin])) {
                while (end < text.size() && is_name_part(text[end]))
                    ++end;
            }
            next = end;
        }
        if (end == std::string_view::npos || end == begin) {
            out += text[at++];
            continue;
        }
        std::optional<std::string> value = replace(text.substr(begin, end - begin));
        next = std::min(next, text.size());
        out += value ? *value : std::string(text.substr(at, next - at));
        at = next;
    }
    return out;
}

}  // namespace

void Environment::merge(const Pairs& pairs) {
    for (const auto& [name, value] : pairs)
        values_.insert_or_assign(name, value);
}

void Environment::set(std::string name, std::string value) {
    values_.insert_or_assign(std::move(name), std::move(value));
}

void Environment::erase(std::string_view name) {
    if (auto at = values_.find(name); at != values_.end()) values_.erase(at);
}

std::optional<std::string_view> Environment::get(std::string_view name) const {
    auto at = values_.find(name);
    if (at == values_.end()) return std::nullopt;
    return at->second;
}

std::vector<std::string> Environment::entries() const {
    std::vector<std::string> out;
    out.reserve(values_.size());
    for (const auto& [name, value] : values_) {
        std::string entry;
        entry.reserve(name.size() + value.size() + 1);
        entry.append(name).append(1, '=').append(value);
        out.push_back(std::move(entry));
    }
    return out;
}

std::string expand_variables(std::string_view text, const VariableLookup& lookup) {
    return substitute(text,
                      [&](std::string_view name) { return lookup(name).value_or(std::string()); });
}

std::string expand_defined(std::string_view text, const Environment& environment) {
    return substitute(text, [&](std::string_view name) -> std::optional<std::string> {
        auto value = environment.get(name);
        return value ? std::optional<std::string>(*value) : std::nullopt;
    });
}

Result<std::string> expand_directory(std::string_view text, const Environment& environment) {
    std::string unset;
    std::string out = substitute(text, [&](std::string_view name) {
        auto value = environment.get(name);
        if (!value && unset.empty()) unset = name;
        return std::string(value.value_or(""));
    });
    if (!unset.empty()) {
        return Error(ErrorCode::invalid_argument, "cwd: variable " + unset + " is not set");
    }
    if (out == "~" || out.starts_with("~/")) {
        out.replace(0, 1, environment.get("HOME").value_or("/root"));
    }
    return out;
}

Status check_environment(const Environment::Pairs& pairs) {
    for (const auto& [name, value] : pairs) {
        if (name.empty() || name.find('=') != std::string::npos) {
            return Error(ErrorCode::invalid_argument,
                         "envs: a name must not be empty nor hold '='");
        }
        if (name.find('\0') != std::string::npos || value.find('\0') != std::string::npos) {
            return Error(ErrorCode::invalid_argument, "envs: names and values must not hold NUL");
        }
    }
    return {};
}

}  // namespace opensandbox::agent
