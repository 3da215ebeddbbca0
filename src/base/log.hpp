#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

/// Structured logs: a level, a sentence, and named values such as `request` and `sandbox`.
namespace opensandbox::log {

enum class Level : std::uint8_t { debug, info, warn, error };
enum class Format : std::uint8_t { text, json };

/// One named value of a log line.
struct Value {
    Value(std::string_view k, std::string_view v) : key(k), text(v) {}
    Value(std::string_view k, const char* v) : key(k), text(v) {}
    Value(std::string_view k, const std::string& v) : key(k), text(v) {}
    template <std::integral T>
    Value(std::string_view k, T v) : key(k), text(std::to_string(v)), number(true) {}
    Value(std::string_view k, bool v) : key(k), text(v ? "true" : "false"), number(true) {}
    /// Three digits behind the point.
    Value(std::string_view k, double v);
    /// A document that is JSON already.
    static Value json(std::string_view key, std::string_view document) {
        Value value(key, document);
        value.number = true;
        return value;
    }

    std::string_view key;
    std::string text;
    bool number = false;  ///< stands without quotes
};

/// Chooses level, shape and destination for this process. Called once, before other threads start.
/// `fd` is borrowed.
void configure(Level level, Format format, int fd);

/// Sees every line that is written, from any thread.
class Writer {
  public:
    virtual ~Writer() = default;
    /// `message` is the sentence alone; the line ends with a newline.
    virtual void write(std::string_view message, std::string_view line) = 0;
};
/// Borrowed until it is replaced, by null in the end: before anything that logs is destroyed.
void attach(Writer* writer);

/// Whether lines of this level are written.
bool enabled(Level level);

/// Writes one line with one write call, so that lines of several threads never mix.
void write(Level level, std::string_view message, std::initializer_list<Value> values = {});

inline void debug(std::string_view message, std::initializer_list<Value> values = {}) {
    write(Level::debug, message, values);
}
inline void info(std::string_view message, std::initializer_list<Value> values = {}) {
    write(Level::info, message, values);
}
inline void warn(std::string_view message, std::initializer_list<Value> values = {}) {
    write(Level::warn, message, values);
}
inline void error(std::string_view message, std::initializer_list<Value> values = {}) {
    write(Level::error, message, values);
}

}  // namespace opensandbox::log
