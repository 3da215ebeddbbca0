#pragma once

#include "http/exchange.hpp"
#include "json/document.hpp"

#include <string>

namespace opensandbox::agent {

/// Codes of error bodies (execd contract 1.3).
namespace code {
inline constexpr const char* kInvalidBody = "INVALID_REQUEST_BODY";
inline constexpr const char* kMissingQuery = "MISSING_QUERY";
inline constexpr const char* kRuntimeError = "RUNTIME_ERROR";
inline constexpr const char* kInvalidFile = "INVALID_FILE";
inline constexpr const char* kInvalidFileContent = "INVALID_FILE_CONTENT";
inline constexpr const char* kInvalidFileMetadata = "INVALID_FILE_METADATA";
inline constexpr const char* kFileNotFound = "FILE_NOT_FOUND";
inline constexpr const char* kContextNotFound = "CONTEXT_NOT_FOUND";
inline constexpr const char* kUnknown = "UNKNOWN";
inline constexpr const char* kNotSupported = "NOT_SUPPORTED";
}  // namespace code

/// Largest JSON body, bytes.
inline constexpr std::size_t kMaxJsonBody = std::size_t{8} << 20;

/// `{"code":…,"message":…}`.
Awaitable<void> reply_error(http::Exchange& exchange, int status, std::string code,
                            std::string message);
/// The same from an Error: its wire code when it has one, else what the contract has for its kind.
Awaitable<void> reply_error(http::Exchange& exchange, Error error);
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
