#include "runtime/native/ground/kernel/subordinate_ids.hpp"

#include <array>
#include <charconv>
#include <optional>

namespace opensandbox::runtime::native {

namespace {

/// The first three fields of "a:b:c:…"; empty when there are fewer.
std::optional<std::array<std::string_view, 3>> fields_of(std::string_view line) {
    std::array<std::string_view, 3> out;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos && i + 1 < out.size()) return std::nullopt;
        out[i] = line.substr(0, colon);
        line.remove_prefix(colon == std::string_view::npos ? line.size() : colon + 1);
    }
    return out;
}

std::optional<std::uint32_t> number_in(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Calls `use` with the fields of every line that has them.
template <class Use>
void for_each_entry(std::string_view text, Use&& use) {
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        if (const auto fields = fields_of(text.substr(0, end))) use(*fields);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
}

}  // namespace

IdRange subordinate_range(std::string_view text, std::string_view user, std::uint32_t id) {
    IdRange largest;
    const std::string number = std::to_string(id);
    for_each_entry(text, [&](const std::array<std::string_view, 3>& fields) {
        if (fields[0] != user && fields[0] != number) return;
        const auto first = number_in(fields[1]);
        const auto count = number_in(fields[2]);
        if (first && count && *count > largest.count) largest = {*first, *count};
    });
    return largest;
}

std::string user_name(std::string_view passwd, std::uint32_t id) {
    std::string found = std::to_string(id);
    const std::string number = found;
    for_each_entry(passwd, [&](const std::array<std::string_view, 3>& fields) {
        if (fields[2] == number && found == number) found = fields[0];
    });
    return found;
}

}  // namespace opensandbox::runtime::native
