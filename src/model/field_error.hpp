#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace opensandbox::model {

/// One step of the way to a field: a name or an index.
using LocationPart = std::variant<std::string, std::int64_t>;
using Location = std::vector<LocationPart>;

/// One broken rule of a request, in the contract's 422 shape (lifecycle 1.3).
struct FieldError {
    FieldError() = default;
    FieldError(std::string t, Location l, std::string m, std::string in, std::string c = {})
        : type(std::move(t)),
          loc(std::move(l)),
          msg(std::move(m)),
          input(std::move(in)),
          ctx(std::move(c)) {}

    std::string type;   ///< "missing", "string_type", "greater_than_equal"…
    Location loc;       ///< starts with "body", "query" or "path"
    std::string msg;    ///< the rule, as a sentence
    std::string input;  ///< what was given, as JSON text; absent from the output when empty
    std::string ctx;    ///< the rule's parameters, as JSON text; absent when empty
};

using FieldErrors = std::vector<FieldError>;

/// `{"detail":[…]}`.
std::string to_json(const FieldErrors& errors);

/// "body.image.uri: Field required; …": for logs and command-line users.
std::string to_text(const FieldErrors& errors);

}  // namespace opensandbox::model
