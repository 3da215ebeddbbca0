#pragma once

#include "http/message.hpp"

#include <string>
#include <string_view>

namespace opensandbox::http {

/// Appends "HTTP/1.1 200 OK\r\n".
void append_status_line(std::string& out, int status);
/// Appends "GET /x HTTP/1.1\r\n"; the caller has checked both parts.
void append_request_line(std::string& out, std::string_view method, std::string_view target);
/// Appends one field line. A name that is no token drops the field; CR, LF and NUL in the value
/// become blanks, so that no value can forge a line.
void append_field(std::string& out, std::string_view name, std::string_view value);
void append_fields(std::string& out, const Fields& fields);

/// The size line in front of a chunk of `size` bytes.
std::string chunk_prefix(std::size_t size);

/// Now as the Date field wants it ("Sun, 06 Nov 1994 08:49:37 GMT"), made once a second.
class HttpDate {
  public:
    std::string_view now();

  private:
    std::int64_t second_ = -1;
    std::string text_;
};

/// A JSON error body of the contract: {"code": …, "message": …}; both are escaped.
std::string error_body(std::string_view code, std::string_view message);

}  // namespace opensandbox::http
