#include "base/log.hpp"

#include "base/clock.hpp"
#include "base/json_string.hpp"
#include "base/log_form.hpp"
#include "base/log_text.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <unistd.h>

namespace opensandbox::log {
namespace {

struct Sink {
    std::atomic<Level> level{Level::info};
    std::atomic<Format> format{Format::text};
    std::atomic<int> fd{STDERR_FILENO};
    std::atomic<Writer*> writer{nullptr};
    std::atomic<const NamedLogger*> logger{nullptr};
};

/// The one piece of process-wide state: where this process writes its log.
Sink& sink() {
    static Sink the_sink;
    return the_sink;
}

std::string_view name(Level level) {
    switch (level) {
        case Level::debug: return "debug";
        case Level::info: return "info";
        case Level::warn: return "warn";
        case Level::error: return "error";
    }
    return "info";
}

bool needs_quotes(std::string_view text) {
    if (text.empty()) return true;
    for (char c : text) {
        auto byte = static_cast<unsigned char>(c);
        if (byte <= 0x20 || byte >= 0x7f || c == '"' || c == '=' || c == '\\') return true;
    }
    return false;
}

void append_member(std::string& line, std::string_view key, std::string_view text) {
    line += ',';
    append_json_string(line, key);
    line += ':';
    append_log_string(line, text);
}

/// RFC 3339 with three digits behind the point, also when they are zero.
std::string to_millisecond_time(Timestamp time) {
    const auto second = std::chrono::floor<std::chrono::seconds>(time);
    std::string text = to_rfc3339(second);
    const auto millis = std::chrono::floor<std::chrono::milliseconds>(time - second).count();
    const std::string digits = std::to_string(1000 + millis);
    text.replace(text.size() - 1, 1, "." + digits.substr(1) + "Z");
    return text;
}

std::string begin_json_line(Level level, std::string_view message, const NamedLogger* logger) {
    std::string line;
    if (logger) {
        line = "{\"level\":\"" + std::string(name(level)) + '"';
        append_member(line, "ts", to_millisecond_time(now()));
        append_member(line, "logger", logger->name);
        append_member(line, "msg", message);
        return line;
    }
    line = "{\"time\":\"" + to_rfc3339(now()) + '"';
    append_member(line, "level", name(level));
    append_member(line, "message", message);
    return line;
}

std::string json_line(Level level, std::string_view message, std::initializer_list<Value> values) {
    const NamedLogger* logger = sink().logger.load();
    std::string line = begin_json_line(level, message, logger);
    for (const Value& value : values) {
        if (!value.number) {
            append_member(line, value.key, value.text);
            continue;
        }
        line += ',';
        append_json_string(line, value.key);
        line += ':';
        append_log_json(line, value.text);
    }
    if (logger) {
        for (const auto& [key, text] : logger->attributes) {
            const bool taken = key == "level" || key == "ts" || key == "logger" || key == "msg" ||
                               std::ranges::find(values, key, &Value::key) != values.end();
            if (!taken) append_member(line, key, text);
        }
    }
    line += "}\n";
    return line;
}

std::string text_line(Level level, std::string_view message, std::initializer_list<Value> values) {
    std::string line = to_rfc3339(now());
    line += ' ';
    line += name(level);
    line += ' ';
    append_log_sentence(line, message);
    for (const Value& value : values) {
        line += ' ';
        line += value.key;
        line += '=';
        if (needs_quotes(value.text)) {
            append_log_string(line, value.text);
        } else {
            line += value.text;
        }
    }
    line += '\n';
    return line;
}

}  // namespace

Value::Value(std::string_view k, double v) : key(k), number(true) {
    char digits[64];
    auto [end, failure] =
        std::to_chars(digits, digits + sizeof digits, v, std::chars_format::fixed, 3);
    text = failure == std::errc() ? std::string(digits, end) : "0";
}

void configure(Level level, Format format, int fd) {
    sink().level = level;
    sink().format = format;
    sink().fd = fd;
}

void attach(Writer* writer) {
    sink().writer = writer;
}

void use_logger(const NamedLogger* logger) {
    sink().logger = logger;
}

bool enabled(Level level) {
    return level >= sink().level.load(std::memory_order_relaxed);
}

void write(Level level, std::string_view message, std::initializer_list<Value> values) {
    if (!enabled(level)) return;
    std::string line = sink().format.load() == Format::json ? json_line(level, message, values)
                                                            : text_line(level, message, values);
    // A full or closed log must never stop the program.
    [[maybe_unused]] ssize_t written = ::write(sink().fd.load(), line.data(), line.size());
    if (Writer* writer = sink().writer.load()) writer->write(message, line);
}

}  // namespace opensandbox::log
