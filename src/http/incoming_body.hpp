#pragma once

#include "http/chunk_decoder.hpp"
#include "http/head_parser.hpp"
#include "http/input_buffer.hpp"
#include "http/message.hpp"

#include <functional>
#include <optional>

namespace opensandbox::http {

/// The body of the message whose head was just taken from `input`, read off the connection as the
/// caller asks for it. Never reads past its own end.
class IncomingBody final : public BodyReader {
  public:
    /// Which errors a broken body is reported with: the server and the client name them
    /// differently.
    struct Errors {
        ErrorCode lost;       ///< the connection ended or failed inside the body
        ErrorCode malformed;  ///< the framing broke
    };

    IncomingBody(Input& input, Framing framing, std::uint64_t limit, Errors errors)
        : input_(input),
          framing_(framing),
          limit_(limit),
          errors_(errors),
          done_(framing.kind == Framing::Kind::none),
          remaining_(framing.length) {}

    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override;
    [[nodiscard]] std::optional<std::uint64_t> content_length() const override;
    /// Malformed ones are left out.
    [[nodiscard]] Fields trailers() const override;

    /// Read to its end.
    [[nodiscard]] bool done() const { return done_; }
    /// Nothing can be read any more, and the connection is in an unknown place.
    [[nodiscard]] bool broken() const { return failure_.has_value(); }
    /// Bytes still to come where that is known.
    [[nodiscard]] std::uint64_t remaining() const { return done_ ? 0 : remaining_; }
    [[nodiscard]] bool length_known() const {
        return done_ || framing_.kind == Framing::Kind::length;
    }

    /// Called once before the first byte is waited for (sends `100 Continue`).
    std::function<Awaitable<Status>()> before_first_read;
    /// Called before each read from the connection (ends a watch on it).
    std::function<Awaitable<void>()> before_read;

  private:
    Awaitable<Result<std::size_t>> read_length(std::span<char> into);
    Awaitable<Result<std::size_t>> read_chunked(std::span<char> into);
    Awaitable<Result<std::size_t>> read_until_close(std::span<char> into);
    Awaitable<Result<std::size_t>> read_bytes(std::span<char> into);
    std::size_t take_buffered(std::span<char> into);
    Error fail(ErrorCode code, std::string_view message);
    Error lost(const Error& error);

    Input& input_;
    Framing framing_;
    std::uint64_t limit_;
    Errors errors_;
    ChunkDecoder chunks_;
    bool done_;
    std::uint64_t remaining_;
    std::uint64_t received_ = 0;
    std::optional<Error> failure_;
};

}  // namespace opensandbox::http
