#include "server/config/sections.hpp"

#include <cctype>

namespace opensandbox::server {
namespace {

std::string lowered(std::string_view text) {
    std::string lower;
    for (char c : text)
        lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return lower;
}

}  // namespace

std::optional<log::Level> parse_log_level(std::string_view text) {
    std::string level = lowered(text);
    if (level == "debug" || level == "trace") return log::Level::debug;
    if (level == "info") return log::Level::info;
    if (level == "warning" || level == "warn") return log::Level::warn;
    if (level == "error" || level == "critical") return log::Level::error;
    return std::nullopt;
}

std::optional<log::Format> parse_log_format(std::string_view text) {
    if (text == "text") return log::Format::text;
    if (text == "json") return log::Format::json;
    return std::nullopt;
}

void read_log(ConfigReader& reader, Config& config) {
    std::string level = "INFO";
    reader.text("log.level", level);
    if (auto parsed = parse_log_level(level)) {
        config.log_level = *parsed;
    } else {
        reader.fail("log.level", "must be DEBUG, INFO, WARNING, ERROR or CRITICAL");
    }
    std::string format = "text";
    reader.text("log.format", format);
    if (auto parsed = parse_log_format(format)) {
        config.log_format = *parsed;
    } else {
        reader.fail("log.format", "must be text or json");
    }
    LogFileConfig& file = config.log_file;
    file.enabled = reader.flag("log.file_enabled", false);
    file.path = reader.path("log.file_path");
    file.access_path = reader.path("log.access_file_path");
    reader.number("log.file_max_bytes", 0, INT64_MAX, file.max_bytes);
    reader.number("log.file_backup_count", 0, 1000, file.backup_count);
}

}  // namespace opensandbox::server
