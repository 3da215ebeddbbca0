#pragma once

#include "base/error.hpp"

#include <boost/json.hpp>

#include <string>
#include <string_view>

/// JSON documents: parsing with limits and typed access to members with errors that name them.
namespace opensandbox::json {

using boost::json::array;
using boost::json::object;
using boost::json::value;

/// Parses one document of at most 64 levels. Fails with `invalid_argument` and the byte offset.
Result<value> parse(std::string_view text);

/// Compact, on one line.
std::string serialize(const value& document);

/// The member, or null when it is absent or JSON null.
const value* find(const object& from, std::string_view name);

/// Typed optional members: empty when absent or null; `invalid_argument` naming the member and the
/// expected type when it has another type. Integers must fit and have no fraction.
Result<std::optional<std::string>> get_string(const object& from, std::string_view name);
Result<std::optional<std::int64_t>> get_integer(const object& from, std::string_view name);
Result<std::optional<double>> get_number(const object& from, std::string_view name);
Result<std::optional<bool>> get_bool(const object& from, std::string_view name);
Result<std::optional<std::vector<std::string>>> get_strings(const object& from,
                                                            std::string_view name);
/// Order of the document is kept.
Result<std::optional<std::vector<std::pair<std::string, std::string>>>> get_string_map(
    const object& from, std::string_view name);

array string_array(const std::vector<std::string>& texts);

/// Of pairs of a name and a text.
template <class Pairs>
object string_object(const Pairs& pairs) {
    object made;
    for (const auto& [name, text] : pairs)
        made[name] = text;
    return made;
}

}  // namespace opensandbox::json
