#pragma once

#include "base/error.hpp"
#include "json/document.hpp"
#include "runtime/docker/engine/transport.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::runtime::docker {

/// Cuts a stream of JSON documents, one a line, into lines. Pure.
class JsonLineSplitter {
  public:
    explicit JsonLineSplitter(std::size_t max_line) : max_line_(max_line) {}

    /// Takes the next bytes of the stream; all lines must have been taken before.
    void feed(std::string_view bytes);
    /// The next whole line without its end, blank ones left out; empty when more bytes are needed.
    /// `too_large` when a line has more than `max_line` bytes: no more can be read then. The view
    /// holds until the next feed().
    Result<std::optional<std::string_view>> next();
    /// After the last byte: what stands behind the last line end.
    [[nodiscard]] std::string_view rest() const;

  private:
    std::size_t max_line_;
    std::string held_;
    std::size_t begin_ = 0;    ///< of what was not returned yet
    std::size_t scanned_ = 0;  ///< no line end before here
};

/// The JSON documents of a stream, one by one.
class DocumentStream {
  public:
    DocumentStream(std::unique_ptr<EngineStream> stream, std::size_t max_line);

    /// Empty at the end. `bad_gateway` for a line that is too long or no JSON, and as
    /// EngineStream::read_some fails.
    Awaitable<Result<std::optional<json::value>>> next();
    void close() { stream_->close(); }
    [[nodiscard]] Error named(const Error& error) const { return stream_->named(error); }

  private:
    Result<std::optional<json::value>> parse(std::string_view line) const;

    std::unique_ptr<EngineStream> stream_;
    JsonLineSplitter lines_;
    std::string piece_;
    bool ended_ = false;
};

}  // namespace opensandbox::runtime::docker
