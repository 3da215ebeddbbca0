#include "cli/arguments.hpp"

#include "cli/duration.hpp"
#include "http/fields.hpp"
#include "options/setters.hpp"

namespace opensandbox::cli {

namespace {

constexpr std::string_view kDurations = "a duration such as 90, 30s, 10m or 1h30m45s";
constexpr std::string_view kDurationsOrNone =
    "a duration such as 90, 30s, 10m or 1h30m45s, or none";

std::vector<std::string> values_of(const std::vector<std::pair<std::string, std::string>>& from,
                                   std::string_view name) {
    std::vector<std::string> values;
    for (const auto& [key, value] : from) {
        if (key == name) values.push_back(value);
    }
    return values;
}

}  // namespace

void Arguments::add_option(std::string_view name, std::string value) {
    options_.emplace_back(std::string(name), std::move(value));
}

void Arguments::add_positional(std::string_view name, std::string value) {
    positionals_.emplace_back(std::string(name), std::move(value));
}

bool Arguments::has(std::string_view option) const {
    return get(option).has_value();
}

std::optional<std::string> Arguments::get(std::string_view option) const {
    auto values = values_of(options_, option);
    if (values.empty()) return std::nullopt;
    return std::move(values.back());
}

std::vector<std::string> Arguments::all(std::string_view option) const {
    return values_of(options_, option);
}

std::vector<std::string> Arguments::rest(std::string_view positional) const {
    return values_of(positionals_, positional);
}

std::string Arguments::one(std::string_view positional) const {
    auto values = rest(positional);
    return values.empty() ? std::string() : std::move(values.front());
}

void Arguments::refuse(std::string message) {
    if (!problem_) problem_ = Failure::usage(std::move(message));
}

void Arguments::refuse(std::string_view name, std::string_view value, std::string_view accepted) {
    refuse(std::string(name) + ": '" + std::string(value) + "' is not accepted; use " +
           std::string(accepted));
}

std::optional<std::int64_t> Arguments::integer(std::string_view option, std::int64_t low,
                                               std::int64_t high) {
    auto text = get(option);
    if (!text) return std::nullopt;
    if (auto number = options::whole_number(*text, low, high)) return number;
    refuse(option, *text,
           high == INT64_MAX
               ? "a whole number of at least " + std::to_string(low)
               : "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return std::nullopt;
}

std::optional<std::chrono::milliseconds> Arguments::duration(std::string_view option) {
    auto text = get(option);
    if (!text) return std::nullopt;
    auto duration = parse_duration_text(*text);
    if (!duration) refuse(option, *text, kDurations);
    return duration;
}

std::optional<std::optional<std::chrono::milliseconds>> Arguments::duration_or_none(
    std::string_view option) {
    using Maybe = std::optional<std::chrono::milliseconds>;
    auto text = get(option);
    if (!text) return std::nullopt;
    if (http::equal_ignoring_case(*text, "none")) return std::optional<Maybe>(Maybe());
    auto duration = parse_duration_text(*text);
    if (!duration) refuse(option, *text, kDurationsOrNone);
    return std::optional<Maybe>(duration);
}

std::vector<std::pair<std::string, std::string>> Arguments::pairs(std::string_view option) {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const auto& text : all(option)) {
        auto equals = text.find('=');
        if (equals == std::string::npos || equals == 0) {
            refuse(option, text, "KEY=VALUE");
            continue;
        }
        pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return pairs;
}

std::optional<std::uint32_t> Arguments::file_mode(std::string_view option) {
    auto text = get(option);
    if (!text) return std::nullopt;
    if (auto mode = options::whole_number(*text, 0, 07777, 8)) return *mode;
    refuse(option, *text, "octal digits such as 644 or 0755");
    return std::nullopt;
}

std::optional<std::string> Arguments::choice(std::string_view option, const std::string& value,
                                             const std::vector<std::string_view>& accepted) {
    for (auto word : accepted) {
        if (http::equal_ignoring_case(word, value)) return std::string(word);
    }
    std::string words;
    for (auto word : accepted)
        words += (words.empty() ? "" : ", ") + std::string(word);
    refuse(option, value, "one of " + words);
    return std::nullopt;
}

}  // namespace opensandbox::cli
