#pragma once

#include "http/message.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::http {

/// One part of multipart/form-data.
struct PartHead {
    std::string name;
    std::optional<std::string> filename;
    Fields fields;
};

/// Streams multipart/form-data without holding a part in memory. Limits: 16 KiB of fields a part,
/// 1000 parts.
class MultipartReader {
  public:
    /// `content_type` holds the boundary; `invalid_argument` when it is not multipart/form-data or
    /// names none. `body` is borrowed.
    static Result<MultipartReader> open(std::string_view content_type, BodyReader& body);
    MultipartReader(MultipartReader&&) noexcept;
    ~MultipartReader();

    /// Skips what is left of the current part; empty after the last part.
    Awaitable<Result<std::optional<PartHead>>> next_part();
    /// Reads the current part's content; 0 at its end.
    Awaitable<Result<std::size_t>> read_some(std::span<char> into);

  private:
    struct State;
    explicit MultipartReader(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

/// A parameter of a field value such as `form-data; name="a"; filename="b"`. Quoted or bare; the
/// extended form (`filename*=UTF-8''%C3%A4`, RFC 5987) wins over the plain one. In quotes a
/// backslash escapes only what needs it, so that a path with backslashes comes through whole.
std::optional<std::string> form_parameter(std::string_view value, std::string_view name);

}  // namespace opensandbox::http
