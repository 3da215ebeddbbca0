#pragma once

#include "http/exchange.hpp"
#include "json/document.hpp"

#include <string>
#include <string_view>

namespace opensandbox::agent {

/// Codes of error bodies (execd contract 1.3).
namespace code {
inline constexpr std::string_view kInvalidBody = "INVALID_REQUEST_BODY";
inline constexpr std::string_view kMissingQuery = "MISSING_QUERY";
inline constexpr std::string_view kRuntimeError = "RUNTIME_ERROR";
inline constexpr std::string_view kInvalidFile = "INVALID_FILE";
inline constexpr std::string_view kInvalidFileContent = "INVALID_FILE_CONTENT";
inline constexpr std::string_view kInvalidFileMetadata = "INVALID_FILE_METADATA";
inline constexpr std::string_view kFileNotFound = "FILE_NOT_FOUND";
inline constexpr std::string_view kContextNotFound = "CONTEXT_NOT_FOUND";
inline constexpr std::string_view kUnknown = "UNKNOWN";
inline constexpr std::string_view kNotSupported = "NOT_SUPPORTED";
}  // namespace code

/// Largest JSON body, bytes.
inline constexpr std::size_t kMaxJsonBody = std::size_t{8} << 20;

/// `{"code":…,"message":…}`.
Awaitable<void> reply_error(http::Exchange& exchange, int status, std::string_view code,
                            std::string_view message);
/// The same from an Error: its wire code when it has one, else what the contract has for its kind.
Awaitable<void> reply_error(http::Exchange& exchange, const Error& error);
/// 200 without a body.
Awaitable<void> reply_empty(http::Exchange& exchange);
/// `application/json; charset=utf-8`.
Awaitable<void> reply_json(http::Exchange& exchange, int status, std::string body);

/// HTTP status of an error of this agent (execd contract 1.3, 1.4).
int status_for(const Error& error);

/// Reads and parses the body: `too_large` past kMaxJsonBody, `invalid_argument` when it is no JSON.
Awaitable<Result<json::value>> read_json(http::Exchange& exchange);

/// The same object with lower-case member names: members of requests match without regard to case.
json::object with_lower_names(const json::object& from);

}  // namespace opensandbox::agent
