#pragma once

#include "server/config/config.hpp"
#include "server/config/reader.hpp"

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace opensandbox::server {

/// One key of the configuration: the reader, the skeleton and the manual walk the same rows.
struct Key {
    std::string_view name{};  ///< within its section
    std::string_view help{};  ///< empty: the section, or the key before it, speaks for it
    /// Reads what stands at `path`. Null: Section::read does.
    void (*read)(ConfigReader& reader, const Key& key, std::string_view path,
                 Config& config) = nullptr;
    /// What a configuration says, in TOML. Null where Section::read does the reading.
    std::string (*shown)(const Config& config) = nullptr;
    std::string_view example{};  ///< TOML that the skeleton shows where no default can be shown
    bool (*holds)(std::string_view text) = nullptr;  ///< of texts: whether the rule is kept
    std::string_view rule{};                         ///< "must be ..."
    std::int64_t least = 0;
    std::int64_t most = 0;

    /// The same row, shown by an example.
    constexpr Key like(std::string_view toml) const {
        Key key = *this;
        key.example = toml;
        return key;
    }
    /// The same row, whose text keeps a rule.
    constexpr Key must(bool (*kept)(std::string_view), std::string_view words) const {
        Key key = *this;
        key.holds = kept;
        key.rule = words;
        return key;
    }
};

std::string toml_value(const std::string& text);
std::string toml_value(const std::filesystem::path& path);
std::string toml_value(const std::vector<std::string>& list);
std::string toml_value(const std::vector<net::AddressBlock>& list);
std::string toml_value(const model::StringMap& map);
std::string toml_value(std::chrono::milliseconds time);  ///< in seconds
template <std::integral T>
std::string toml_value(T value) {
    if constexpr (std::same_as<T, bool>) {
        return value ? "true" : "false";
    } else {
        return std::to_string(value);
    }
}
template <class T>
std::string toml_value(const std::optional<T>& value) {
    return value ? toml_value(*value) : std::string();
}

/// Rows by the kind of their value; `member` is the way to it: a member of Config, one of that, ...
namespace keys {

template <auto... member, class C>
constexpr auto& at(C& config) {
    return (config.*....*member);
}
template <auto... member>
using Value = std::remove_cvref_t<decltype(at<member...>(std::declval<Config&>()))>;

/// What has a reader of its own: `read(reader, key, path, into)`.
template <auto read, auto... member>
constexpr Key value(std::string_view name, std::string_view help) {
    Key key{.name = name, .help = help};
    key.read = [](ConfigReader& reader, const Key& row, std::string_view path, Config& config) {
        read(reader, row, path, at<member...>(config));
    };
    key.shown = [](const Config& config) { return toml_value(at<member...>(config)); };
    return key;
}

template <class T>
void read_text(ConfigReader& reader, const Key& key, std::string_view path, T& into) {
    std::string text;
    if (!reader.text(path, text)) return;
    if (key.holds && !key.holds(text)) reader.fail(path, key.rule);
    into = std::move(text);
}
template <auto... member>
constexpr Key text(std::string_view name, std::string_view help) {
    return value<read_text<Value<member...>>, member...>(name, help);
}

/// A text that is a path; `~/` at its start is the home directory.
void read_file(ConfigReader& reader, const Key& key, std::string_view path,
               std::filesystem::path& into);
template <auto... member>
constexpr Key file(std::string_view name, std::string_view help) {
    return value<read_file, member...>(name, help);
}

void read_texts(ConfigReader& reader, const Key& key, std::string_view path,
                std::vector<std::string>& into);
template <auto... member>
constexpr Key texts(std::string_view name, std::string_view help) {
    return value<read_texts, member...>(name, help);
}

/// A table of texts.
void read_texts_table(ConfigReader& reader, const Key& key, std::string_view path,
                      model::StringMap& into);

void read_flag(ConfigReader& reader, const Key& key, std::string_view path, bool& into);
template <auto... member>
constexpr Key flag(std::string_view name, std::string_view help) {
    return value<read_flag, member...>(name, help);
}

template <class T>
void read_number(ConfigReader& reader, const Key& key, std::string_view path, T& into) {
    std::int64_t number = 0;
    if (!reader.number(path, key.least, key.most, number)) return;
    if constexpr (std::integral<T>) {
        into = static_cast<T>(number);
    } else {
        into = number;
    }
}
template <auto... member>
constexpr Key number(std::string_view name, std::int64_t least, std::int64_t most,
                     std::string_view help) {
    Key key = value<read_number<Value<member...>>, member...>(name, help);
    key.least = least;
    key.most = most;
    return key;
}

template <class T>
void read_seconds(ConfigReader& reader, const Key&, std::string_view path, T& into) {
    std::chrono::milliseconds time{};
    if (reader.seconds(path, time)) into = std::chrono::ceil<T>(time);
}
template <auto... member>
constexpr Key seconds(std::string_view name, std::string_view help) {
    return value<read_seconds<Value<member...>>, member...>(name, help);
}

template <class T>
struct Word {
    std::string_view text;
    T value;
};

/// "must be a, b or c", and what else is to be said of it.
template <class Words>
std::string rule_of(const Words& words, std::string_view remark) {
    std::string rule = "must be ";
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0) rule += i + 1 == words.size() ? " or " : ", ";
        rule += words[i].text;
    }
    return rule.append(remark);
}

/// One of some words. Without a member there is one word, which changes nothing.
template <const auto& words, auto... member>
constexpr Key choice(std::string_view name, std::string_view help, std::string_view remark = {}) {
    Key key{.name = name, .help = help};
    key.rule = remark;
    key.read = [](ConfigReader& reader, const Key& row, std::string_view path, Config& config) {
        std::string text;
        if (!reader.text(path, text)) return;
        for (const auto& word : words) {
            if (word.text != text) continue;
            if constexpr (sizeof...(member) > 0) at<member...>(config) = word.value;
            return;
        }
        reader.fail(path, rule_of(words, row.rule));
    };
    key.shown = [](const Config& config) {
        for (const auto& word : words) {
            if constexpr (sizeof...(member) > 0) {
                if (at<member...>(config) != word.value) continue;
            }
            return toml_value(std::string(word.text));
        }
        return std::string();
    };
    return key;
}

/// A key that Section::read reads; `shown` is TOML.
constexpr Key irregular(std::string_view name, std::string_view shown, std::string_view help = {}) {
    return Key{.name = name, .help = help, .example = shown};
}

}  // namespace keys
}  // namespace opensandbox::server
