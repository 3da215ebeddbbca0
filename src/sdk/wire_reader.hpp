#pragma once

#include "base/clock.hpp"
#include "json/document.hpp"
#include "opensandbox/error.hpp"
#include "opensandbox/sandbox.hpp"

#include <chrono>
#include <map>

namespace opensandbox::sdk::wire {

/// Reads members of one JSON object and remembers the first that is missing or of another type, so
/// that a decoder is a list of members and one check at its end.
class ObjectReader {
  public:
    explicit ObjectReader(const json::object& from) : from_(from) {}

    std::string string(std::string_view name);
    std::optional<std::string> optional_string(std::string_view name);
    std::int64_t integer(std::string_view name);
    std::optional<std::int64_t> optional_integer(std::string_view name);
    double number(std::string_view name);
    bool boolean(std::string_view name);
    std::optional<bool> optional_boolean(std::string_view name);
    Timestamp time(std::string_view name);
    std::optional<Timestamp> optional_time(std::string_view name);
    std::vector<std::string> strings(std::string_view name);
    std::map<std::string, std::string> string_map(std::string_view name);
    /// Null when absent.
    const json::object* optional_object(std::string_view name);
    const json::object& object(std::string_view name);
    const json::array& array(std::string_view name);

    void fail(std::string_view name, std::string_view rule);
    [[nodiscard]] bool failed() const { return !problem_.empty(); }
    /// A `protocol` error; only when failed().
    [[nodiscard]] Error error() const;

  private:
    template <class T>
    std::optional<T> keep(opensandbox::Result<std::optional<T>> read);

    const json::object& from_;
    std::string problem_;
};

/// Parses an answer that must be an object.
Result<json::object> parse_object(std::string_view body);
/// Parses an answer that must be an array.
Result<json::array> parse_array(std::string_view body);

/// Of any list of the lifecycle contract.
Result<Pagination> pagination_of(const json::object& from);

}  // namespace opensandbox::sdk::wire
