#include "server/query_number.hpp"

#include "model/field_rule.hpp"

#include <string>

namespace opensandbox::server {

void read_number(const http::Query& query, std::string_view name, std::int64_t maximum,
                 std::int64_t& into, model::FieldErrors& errors) {
    auto text = query.get(name);
    if (!text) return;
    model::Location at{std::string("query"), std::string(name)};
    std::string input = model::json_string(*text);
    auto number = model::lax_integer(*text);
    if (!number) {
        errors.emplace_back("int_parsing", at,
                            "Input should be a valid integer, unable to parse string as an integer",
                            input);
    } else if (*number < 1) {
        errors.emplace_back("greater_than_equal", at, "Input should be greater than or equal to 1",
                            input, "{\"ge\":1}");
    } else if (*number > maximum) {
        std::string limit = std::to_string(maximum);
        errors.emplace_back("less_than_equal", at, "Input should be less than or equal to " + limit,
                            input, "{\"le\":" + limit + "}");
    } else {
        into = *number;
    }
}

}  // namespace opensandbox::server
