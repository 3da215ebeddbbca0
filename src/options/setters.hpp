#pragma once

#include "options/option.hpp"

#include <charconv>
#include <cstdint>
#include <optional>

namespace opensandbox::options {

/// Digits only, with a minus or without, from `low` to `high`.
inline std::optional<std::int64_t> whole_number(std::string_view text, std::int64_t low,
                                                std::int64_t high, int base = 10) {
    std::int64_t number = 0;
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    const bool whole = failed == std::errc() && end == text.data() + text.size();
    return whole && number >= low && number <= high ? std::optional(number) : std::nullopt;
}

/// An option whose value goes somewhere. What setters set must outlive them.
inline Option bound(Option option, Setter set, std::string_view variable = {}) {
    option.set = std::move(set);
    option.variable = variable;
    return option;
}

/// What `read` makes of the text: nothing of one that is not `accepted`.
template <class T, class Read>
Setter value(T& into, Read read, std::string accepted) {
    return [&into, read, accepted = std::move(accepted)](const std::string& text) {
        const auto made = read(text);
        if (!made) return accepted;
        const auto& found = *made;
        into = static_cast<T>(found);
        return std::string();
    };
}

template <class T>
Setter text(T& into) {
    return value(into, [](const std::string& text) { return &text; }, {});
}

/// What a flag says by being there.
template <class T>
Setter constant(T& into, bool said) {
    return value(into, [said](const std::string&) { return &said; }, {});
}

template <class T>
Setter number(T& into, std::int64_t low, std::int64_t high, const std::string& kind = "a number") {
    const auto read = [=](const std::string& text) { return whole_number(text, low, high); };
    return value(into, read, kind + " from " + std::to_string(low) + " to " + std::to_string(high));
}

}  // namespace opensandbox::options
