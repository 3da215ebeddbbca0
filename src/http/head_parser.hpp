#pragma once

#include "http/message.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

/// The strict parser of HTTP/1 heads (RFC 9112). Pure functions over bytes that have arrived; every
/// leniency that lets two parties disagree about where a message ends is refused: bare CR or LF,
/// folded lines, blanks before a colon, NUL and other control characters.
namespace opensandbox::http {

/// Fields of one message; more are refused as too large.
constexpr std::size_t kMaxFieldCount = 128;

/// Looks for the empty line that ends a head while its bytes arrive, each byte once.
class HeadScanner {
  public:
    enum class State : std::uint8_t { incomplete, complete, malformed };
    /// `bytes` is everything received since the start of the head.
    State scan(std::string_view bytes);
    /// Size of the head with its empty line, once complete.
    [[nodiscard]] std::size_t size() const { return scanned_; }

  private:
    std::size_t scanned_ = 0;
    std::size_t line_start_ = 0;
};

/// Why a request was refused: the status to answer with and a sentence.
struct Refusal {
    int status;
    std::string_view reason;
};

/// How many bytes of empty lines stand before a start line (RFC 9112 section 2.2).
std::size_t leading_empty_lines(std::string_view bytes);

/// Parses a complete request head into `out`; the refusal when it breaks a rule. An absolute-form
/// target becomes origin form and its authority the Host.
std::optional<Refusal> parse_request_head(std::string_view head, RequestHead& out);

/// A response head with the minor version of HTTP/1 its sender speaks.
struct ParsedResponse {
    ResponseHead head;
    int minor_version = 1;
};
/// Parses a complete response head; the reason when it breaks a rule.
std::optional<std::string_view> parse_response_head(std::string_view head, ParsedResponse& out);

/// Parses field lines up to and without the final empty line; the reason when they break a rule.
/// `too_many` is returned for more than kMaxFieldCount.
extern const std::string_view kTooManyFields;
std::optional<std::string_view> parse_fields(std::string_view lines, Fields& out);

/// How the end of a body is found.
struct Framing {
    enum class Kind : std::uint8_t { none, length, chunked, until_close };
    Kind kind = Kind::none;
    std::uint64_t length = 0;
};

/// The framing of a request body; refuses what smuggles (both length and coding, differing or
/// malformed lengths, unknown codings).
std::optional<Refusal> request_framing(const RequestHead& head, Framing& out);
/// The framing of a response body.
std::optional<std::string_view> response_framing(const ParsedResponse& response,
                                                 std::string_view request_method, Framing& out);

/// Whether the sender of these fields keeps the connection open after the message.
bool keeps_alive(const Fields& fields, int minor_version);

/// A field name or method: one or more of the characters RFC 9110 section 5.6.2 allows.
bool is_token(std::string_view text);

}  // namespace opensandbox::http
