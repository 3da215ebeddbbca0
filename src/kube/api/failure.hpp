#pragma once

#include "base/error.hpp"
#include "http/message.hpp"

#include <chrono>
#include <optional>
#include <string_view>

namespace opensandbox::kube {

/// What an answer of status 400 or more stands for. wire() is the reason that the API server gives
/// ("AlreadyExists", "Conflict", "Expired", "Forbidden", "Invalid"…), message() its sentence. The
/// code is that of the status: 409 and 412 conflict, 410 not_found, 422 invalid_argument, 429
/// resource_exhausted; a quota that is used up (403) is resource_exhausted, too.
Error failure_of(int status, std::string_view body);

/// An error inside a stream of events (a Status object) by the same rules.
Error failure_of_event(std::string_view status_object);

/// What one request does when it is sent twice.
enum class Repeating : std::uint8_t {
    harmless,  ///< reads, and writes that lead to the same state
    harmful    ///< only what was surely not carried out is sent again
};

/// How long to wait before an answer's request is sent again: Retry-After (seconds), else zero,
/// which leaves it to the caller's back-off. Empty: the answer stands.
std::optional<std::chrono::milliseconds> pause_before_repeat(const http::ResponseHead& answer,
                                                             Repeating repeating);

/// Whether a request without any answer is sent again.
bool may_repeat(const Error& no_answer, Repeating repeating);

}  // namespace opensandbox::kube
