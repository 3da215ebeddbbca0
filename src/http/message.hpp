#pragma once

#include "http/fields.hpp"
#include "net/stream.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::http {

/// Start line and fields of a request; `target` is kept byte for byte.
struct RequestHead {
    RequestHead() = default;
    RequestHead(std::string m, std::string t, Fields f = {})
        : method(std::move(m)), target(std::move(t)), fields(std::move(f)) {}

    std::string method;
    std::string target;  ///< origin form, raw: "/a%20b?x=1"
    Fields fields;
    int minor_version = 1;  ///< of HTTP/1

    /// The target up to `?`, raw.
    [[nodiscard]] std::string_view path() const;
    /// The target after `?`, raw, empty when there is none.
    [[nodiscard]] std::string_view query() const;
};

/// Start line and fields of a response.
struct ResponseHead {
    ResponseHead() = default;
    explicit ResponseHead(int s, Fields f = {}) : status(s), fields(std::move(f)) {}

    int status = 200;
    Fields fields;
};

/// A whole response: Content-Length is set when it is sent.
struct Response {
    Response() = default;
    explicit Response(int s) : head(s) {}
    Response(int s, std::string content_type, std::string b);

    ResponseHead head;
    std::string body;
};

/// Shorthand for `application/json`.
Response json_response(int status, std::string body);

/// A message body, read piece by piece.
class BodyReader {
  public:
    virtual ~BodyReader() = default;
    /// 0 at the end. `protocol` for broken framing, `too_large` past the limit in force.
    virtual Awaitable<Result<std::size_t>> read_some(std::span<char> into) = 0;
    /// Declared length; empty when chunked or unknown.
    [[nodiscard]] virtual std::optional<std::uint64_t> content_length() const = 0;
    /// Fields that came behind a chunked body, once it was read to its end.
    [[nodiscard]] virtual Fields trailers() const { return {}; }
};

/// Reads to the end; `too_large` (naming the limit) when the body has more than `limit` bytes.
Awaitable<Result<std::string>> read_all(BodyReader& body, std::size_t limit);

/// Decodes %XX; with `plus_is_space` also `+`. Empty when an escape is malformed.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space = false);
/// Encodes everything but unreserved characters and those in `keep`.
std::string percent_encode(std::string_view text, std::string_view keep = "");

/// Query parameters in order, decoded as form data (`+` is a space), repeated names kept.
class Query {
  public:
    /// A malformed escape is kept as it stands.
    explicit Query(std::string_view raw);
    [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
    [[nodiscard]] std::vector<std::string_view> all(std::string_view name) const;
    [[nodiscard]] auto begin() const { return items_.begin(); }
    [[nodiscard]] auto end() const { return items_.end(); }

  private:
    std::vector<std::pair<std::string, std::string>> items_;
};

/// The reason phrase ("Not Found"); "Unknown" for codes without one.
std::string_view reason_phrase(int status);

}  // namespace opensandbox::http
