#pragma once

#include "base/error.hpp"
#include "http/message.hpp"
#include "model/field_error.hpp"

#include <string>
#include <string_view>

/// The shapes of failed answers (lifecycle 1.3).
namespace opensandbox::server {

/// `{"code","message"}`; status and, where the error names none, code follow from the error's kind.
http::Response error_response(const Error& error);
http::Response error_response(int status, std::string_view code, std::string_view message);

/// Failures of a backend before it answered: BACKEND_… (lifecycle 1.5). `backend` says which.
http::Response render_backend_error(const Error& error, const std::string& backend);

/// 503: there is no room for one more request of its kind (lifecycle 1.1).
http::Response no_room();

/// 422 `{"detail":[…]}`.
http::Response validation_response(const model::FieldErrors& errors);

/// `{"detail":"Not Found"}` and `{"detail":"Method Not Allowed"}` with `Allow`.
http::Response unknown_route();
http::Response wrong_method(const std::vector<std::string>& allowed);

}  // namespace opensandbox::server
