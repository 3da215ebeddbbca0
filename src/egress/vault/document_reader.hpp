#pragma once

#include "base/error.hpp"

#include <boost/json.hpp>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Strict reading of one JSON document: unknown members are refused, every error names its place.
namespace opensandbox::egress {

/// A place in the document, and the first error that was found. Once there is one, what is read is
/// empty.
class DocumentReader {
  public:
    /// Parses a body of at most `limit` bytes into memory that is overwritten afterwards.
    static Result<boost::json::value> parse(std::string_view body, std::size_t limit);

    [[nodiscard]] bool failed() const { return error_.has_value(); }
    [[nodiscard]] Error error() const {
        return {ErrorCode::invalid_argument, error_.value_or(std::string())};
    }
    /// Keeps the first.
    void fail(const std::string& place, std::string_view what);

    /// The value as an object with no other members than these; null when it is none.
    const boost::json::object* object(const boost::json::value& value, const std::string& place,
                                      std::initializer_list<std::string_view> members);
    /// A member that is there and not null.
    static const boost::json::value* find(const boost::json::object& object, std::string_view name);
    /// A member's text; empty when it is absent. The view lives as long as the document.
    std::optional<std::string_view> text(const boost::json::object& object, std::string_view name,
                                         const std::string& place);
    /// The same, which must be there and not be blank.
    std::string_view required_text(const boost::json::object& object, std::string_view name,
                                   const std::string& place);
    /// A member's items; null when it is absent. At most `limit`.
    const boost::json::array* list(const boost::json::object& object, std::string_view name,
                                   const std::string& place, std::size_t limit);
    std::vector<std::string> texts(const boost::json::object& object, std::string_view name,
                                   const std::string& place, std::size_t limit);

  private:
    std::optional<std::string> error_;
};

/// "a.b", or "b" at the root.
std::string member_place(const std::string& place, std::string_view name);
/// "a[3]"
std::string item_place(const std::string& place, std::size_t index);

}  // namespace opensandbox::egress
