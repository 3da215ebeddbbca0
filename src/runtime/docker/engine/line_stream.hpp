#pragma once

#include "json/document.hpp"
#include "runtime/docker/engine/json_lines.hpp"
#include "runtime/docker/engine/transport.hpp"

#include <memory>
#include <optional>
#include <string>

namespace opensandbox::runtime::docker {

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
