#include "server/config/sections.hpp"

#include <cctype>

namespace opensandbox::server {
namespace {

constexpr std::array kLevels{
    keys::Word{"DEBUG", log::Level::debug},    keys::Word{"INFO", log::Level::info},
    keys::Word{"WARNING", log::Level::warn},   keys::Word{"ERROR", log::Level::error},
    keys::Word{"CRITICAL", log::Level::error},
};
constexpr std::array kFormats{
    keys::Word{"text", log::Format::text},
    keys::Word{"json", log::Format::json},
};

void read_level(ConfigReader& reader, const Key&, std::string_view path, Config& config) {
    std::string level;
    if (!reader.text(path, level)) return;
    if (auto parsed = parse_log_level(level)) {
        config.log_level = *parsed;
    } else {
        reader.fail(path, keys::rule_of(kLevels, {}));
    }
}

/// Case does not matter, and there are other names for some.
constexpr Key level_key() {
    Key key = keys::choice<kLevels, &Config::log_level>("level",
                                                        "DEBUG, INFO, WARNING, ERROR or CRITICAL.");
    key.read = read_level;
    return key;
}

constexpr std::array kLogKeys{
    level_key(),
    keys::choice<kFormats, &Config::log_format>("format", "text or json, on standard error."),
    keys::flag<&Config::log_file, &LogFileConfig::enabled>(
        "file_enabled",
        "Also into files. A full file is renamed to <name>.1, the older ones count up."),
    keys::file<&Config::log_file, &LogFileConfig::path>("file_path", "")
        .like("\"~/logs/opensandbox/server.log\""),
    keys::file<&Config::log_file, &LogFileConfig::access_path>(
        "access_file_path", "One line a request; by default beside the other.")
        .like("\"~/logs/opensandbox/access.log\""),
    keys::number<&Config::log_file, &LogFileConfig::max_bytes>("file_max_bytes", 0, INT64_MAX,
                                                               "0: never turned over."),
    keys::number<&Config::log_file, &LogFileConfig::backup_count>("file_backup_count", 0, 1000,
                                                                  "Full files that are kept."),
};

}  // namespace

constinit const Section kLogSection{.name = "log", .keys = kLogKeys};

std::optional<log::Level> parse_log_level(std::string_view text) {
    std::string level;
    for (char c : text)
        level += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (level == "TRACE") level = "DEBUG";
    if (level == "WARN") level = "WARNING";
    for (const auto& word : kLevels) {
        if (word.text == level) return word.value;
    }
    return std::nullopt;
}

std::optional<log::Format> parse_log_format(std::string_view text) {
    for (const auto& word : kFormats) {
        if (word.text == text) return word.value;
    }
    return std::nullopt;
}

}  // namespace opensandbox::server
