#include "model/resource_quantity.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

namespace opensandbox::model {
namespace {

std::string_view trimmed(std::string_view text) {
    auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    while (!text.empty() && blank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && blank(text.back()))
        text.remove_suffix(1);
    return text;
}

struct Unit {
    std::string_view name;
    std::uint64_t factor;
};

constexpr std::uint64_t kKilo = 1000;
constexpr std::uint64_t kKibi = 1024;
constexpr std::array kUnits{
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"k", kKilo},
    Unit{"kb", kKilo},
    Unit{"ki", kKibi},
    Unit{"m", kKilo* kKilo},
    Unit{"mb", kKilo* kKilo},
    Unit{"mi", kKibi* kKibi},
    Unit{"g", kKilo* kKilo* kKilo},
    Unit{"gb", kKilo* kKilo* kKilo},
    Unit{"gi", kKibi* kKibi* kKibi},
    Unit{"t", kKilo* kKilo* kKilo* kKilo},
    Unit{"tb", kKilo* kKilo* kKilo* kKilo},
    Unit{"ti", kKibi* kKibi* kKibi* kKibi},
};

}  // namespace

std::optional<double> parse_cpu(std::string_view text) {
    text = trimmed(text);
    double scale = 1;
    if (text.ends_with('m')) {
        scale = 1000;
        text.remove_suffix(1);
    }
    if (text.starts_with('+')) text.remove_prefix(1);
    double cores = 0;
    auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), cores);
    if (problem != std::errc() || stop != text.data() + text.size()) return std::nullopt;
    cores /= scale;
    if (!std::isfinite(cores) || cores <= 0) return std::nullopt;
    return cores;
}

std::optional<std::uint64_t> parse_memory(std::string_view text) {
    text = trimmed(text);
    std::uint64_t number = 0;
    auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() || number == 0) return std::nullopt;
    std::string unit;
    for (const char* at = stop; at != text.data() + text.size(); ++at) {
        unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*at)));
    }
    for (const Unit& known : kUnits) {
        if (known.name != unit) continue;
        if (number > INT64_MAX / known.factor) return std::nullopt;
        return number * known.factor;
    }
    return std::nullopt;
}

std::optional<std::int64_t> parse_gpu(std::string_view text) {
    text = trimmed(text);
    if (text.size() == 3 && (text[0] | 32) == 'a' && (text[1] | 32) == 'l' &&
        (text[2] | 32) == 'l') {
        return -1;
    }
    std::int64_t count = 0;
    auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (problem != std::errc() || stop != text.data() + text.size() || count <= 0) {
        return std::nullopt;
    }
    return count;
}

}  // namespace opensandbox::model
