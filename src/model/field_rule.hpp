#pragma once

#include "base/clock.hpp"
#include "model/field_error.hpp"
#include "model/json_text.hpp"

#include <boost/json/fwd.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Validation by tables: a type states its fields as FieldRules next to itself, one interpreter
/// checks a document against them and reports every broken rule at once. Types are read leniently
/// where the contract does (lifecycle 1.1): integers and booleans also as text, times as text or
/// numbers; text never from numbers.
namespace opensandbox::model {

enum class FieldKind : std::uint8_t {
    text,
    integer,
    boolean,
    timestamp,
    text_list,
    text_map,
    nullable_text_map,  ///< values may be null
    object,
    object_list,
    integer_list,  ///< each item by the one rule of `members`
};

/// A check of text beyond its length; `shown` is what the error quotes as the pattern.
struct TextPattern {
    bool (*matches)(std::string_view);
    std::string_view shown;
};

/// One field. Its wire name is camelCase; the snake_case form is accepted, too.
struct FieldRule {
    std::string_view name;
    FieldKind kind = FieldKind::text;
    bool required = false;
    bool nullable = true;                      ///< null counts as absent
    std::optional<std::int64_t> minimum = {};  ///< of an integer, or of a length
    std::optional<std::int64_t> maximum = {};
    const TextPattern* pattern = nullptr;
    std::span<const FieldRule> members = {};  ///< of object and the lists of other than text
    bool closed = false;                      ///< object(s): unknown members are errors
    /// What this server does not do with the field, which would be dangerous to pass over: it is an
    /// error with this reason.
    std::string_view unserved = {};
};

/// "resourceLimits" -> "resource_limits".
std::string snake_case(std::string_view camel);

/// Checks `body`, which must be an object, against the rules.
void check_object(const boost::json::value& body, std::span<const FieldRule> rules,
                  const Location& at, FieldErrors& errors);

/// Checks one value against one rule.
void check_field(const boost::json::value& value, const FieldRule& rule, const Location& at,
                 FieldErrors& errors);

/// `at` with one more step.
Location within(const Location& at, LocationPart part);

/// A rule about several fields: type `value_error`, as the contract words it.
FieldError value_error(const Location& at, std::string_view message, std::string input);

/// The field under either of its names; null when absent or JSON null.
const boost::json::value* find_field(const boost::json::object& from, std::string_view name);

/// Whether the field is there, even as null.
bool has_field(const boost::json::object& from, std::string_view name);

/// Reads what passed the check; empty when absent.
std::optional<std::string> read_text(const boost::json::object& from, std::string_view name);
std::optional<std::int64_t> read_integer(const boost::json::object& from, std::string_view name);
bool read_boolean(const boost::json::object& from, std::string_view name, bool fallback);
std::optional<std::vector<std::string>> read_list(const boost::json::object& from,
                                                  std::string_view name);
std::vector<std::int64_t> read_integers(const boost::json::object& from, std::string_view name);
/// Members that are null are left out.
std::optional<StringMap> read_map(const boost::json::object& from, std::string_view name);

/// Integers leniently: numbers without fraction, booleans, decimal text. Values past the range of
/// 64 bits are cut to it. Empty with the error's type and sentence filled in otherwise.
std::optional<std::int64_t> lax_integer(const boost::json::value& value, FieldError& why);
/// true/false/1/0/yes/no/on/off/t/f/y/n, case ignored.
std::optional<bool> lax_boolean(std::string_view text);
/// Decimal text with optional sign and surrounding blanks, "70.0" and "7_0" too.
std::optional<std::int64_t> lax_integer(std::string_view text);

}  // namespace opensandbox::model
