#include "base/log.hpp"

#include "base/clock.hpp"
#include "base/json_string.hpp"

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
        if (byte <= 0x20 || byte == 0x7f || c == '"' || c == '=') return true;
    }
    return false;
}

std::string json_line(Level level, std::string_view message, std::initializer_list<Value> values) {
    std::string line = "{\"time\":\"" + to_rfc3339(now()) + "\",\"level\":\"";
    line += name(level);
    line += "\",\"message\":";
    append_json_string(line, message);
    for (const Value& value : values) {
        line += ',';
        append_json_string(line, value.key);
        line += ':';
        if (value.number) {
            line += value.text;
        } else {
            append_json_string(line, value.text);
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
    for (char c : message)
        line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    for (const Value& value : values) {
        line += ' ';
        line += value.key;
        line += '=';
        if (needs_quotes(value.text)) {
            append_json_string(line, value.text);
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
