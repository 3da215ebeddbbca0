#pragma once

#include "mcp/tool.hpp"
#include "opensandbox/commands.hpp"

#include <string>

namespace opensandbox::mcp {

/// What one answer may hold of a stream, in bytes.
inline constexpr std::int64_t kLargestOutput = std::int64_t{4} << 20U;

/// What a running command has written, as an answer shows it: neighbours joined, up to `shown`
/// bytes of each stream, up to `kept` for later.
class OutputRecord {
  public:
    OutputRecord(std::size_t shown, std::size_t kept) : shown_(shown), kept_(kept) {}

    void take(const sdk::Event& event);
    [[nodiscard]] std::uint64_t bytes() const { return standard_.total + error_.total; }
    [[nodiscard]] const std::string& last_line() const { return last_line_; }
    [[nodiscard]] bool truncated() const { return standard_.cut() || error_.cut(); }
    [[nodiscard]] const std::string& id() const { return id_; }
    /// The document of execution_schema().
    [[nodiscard]] json::object document(const sdk::Execution& execution) const;
    /// Whole streams, as far as they were kept.
    [[nodiscard]] std::string take_standard() { return std::move(standard_.kept); }
    [[nodiscard]] std::string take_error() { return std::move(error_.kept); }

  private:
    struct Stream {
        std::string kept;
        json::array messages;
        std::size_t shown = 0;  ///< bytes
        std::uint64_t total = 0;
        [[nodiscard]] bool cut() const { return total > shown; }
    };
    void add_results(const sdk::Event& event);
    void write(Stream& stream, const sdk::Event& event, bool is_error) const;
    static json::value cursor_of(const Stream& stream);

    std::size_t shown_;
    std::size_t kept_;
    Stream standard_;
    Stream error_;
    std::string id_;
    std::string last_line_;
    json::array results_;
    std::size_t result_bytes_ = 0;
    json::array left_out_;
    json::value count_;  ///< of runs in the code context
    json::value problem_;
    json::value complete_;
};

/// The part of execution_schema() that says nothing of output, for a command in the background.
json::object started_document(std::string_view id);

/// Follows the events of a command to their end. `interrupt` is called once when the call is given
/// up, with the command's id when that is known.
Awaitable<ToolResult> follow(Call& call, sdk::EventStream stream,
                             std::function<Awaitable<void>(std::string id)> interrupt);

}  // namespace opensandbox::mcp
