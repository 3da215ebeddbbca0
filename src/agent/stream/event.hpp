#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::agent {

/// Writes the events of one execution stream into a buffer (execd contract 2): one compact JSON
/// object and two line feeds each, no `data:` prefix.
class EventWriter {
  public:
    enum class Stream : unsigned char { standard_output, standard_error };

    /// Milliseconds since the epoch that the following events carry.
    void at(std::int64_t timestamp);

    void init(std::string_view id);
    void ping();
    /// Nothing for an empty text.
    void output(Stream stream, std::string_view text);
    void error(std::string_view name, std::string_view value,
               const std::vector<std::string>& traceback);
    /// The state of a kernel; "error" in practice.
    void status(std::string_view state);
    void execution_count(std::int64_t count);
    /// `mime` is a JSON object: MIME type to value, with "text" for text/plain.
    void result(std::string_view mime);
    /// `execution_time` in milliseconds, left out when 0.
    void complete(std::int64_t execution_time);

    /// Puts the events of another writer behind these.
    void append(const EventWriter& other) { buffer_ += other.buffer_; }
    [[nodiscard]] const std::string& buffer() const { return buffer_; }
    [[nodiscard]] bool empty() const { return buffer_.empty(); }
    void clear() { buffer_.clear(); }

  private:
    std::string buffer_;
    std::string ending_;  ///< `,"timestamp":N}` and the line feeds, built once a batch
};

}  // namespace opensandbox::agent
