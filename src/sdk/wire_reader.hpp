#pragma once

#include "base/clock.hpp"
#include "json/document.hpp"
#include "json/fields.hpp"
#include "opensandbox/error.hpp"
#include "opensandbox/sandbox.hpp"

#include <chrono>

namespace opensandbox::sdk::wire {

/// Reads single members of a JSON object that is no document of its own (sdk/fields has those), and
/// remembers the first that is missing or of another type.
class ObjectReader {
  public:
    explicit ObjectReader(const json::object& from) : from_(from) {}

    std::string string(std::string_view name);
    std::optional<std::string> optional_string(std::string_view name);
    std::int64_t integer(std::string_view name);
    std::optional<std::int64_t> optional_integer(std::string_view name);
    bool boolean(std::string_view name);
    std::optional<bool> optional_boolean(std::string_view name);
    Timestamp time(std::string_view name);
    std::optional<Timestamp> optional_time(std::string_view name);
    std::vector<std::string> strings(std::string_view name);
    /// Null when absent.
    const json::object* optional_object(std::string_view name);
    const json::object& object(std::string_view name);

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

/// What is wrong with an answer; only when the reader failed.
Error broken_answer(const json::FieldReader& reader);

/// A document of an answer, read by its list of members (sdk/fields).
template <class T, class Members>
Result<T> read_document(const json::object& from, Members members) {
    json::FieldReader reader(from);
    T document;
    members(reader, document);
    if (reader.failed()) return broken_answer(reader);
    return document;
}

/// An answer that is one document.
template <class T, class Members>
Result<T> decode_document(std::string_view body, Members members) {
    auto document = parse_object(body);
    if (!document) return document.error();
    return read_document<T>(*document, members);
}

/// An answer that has a list of documents in one of its members.
template <class T, class Members>
Result<std::vector<T>> decode_documents(std::string_view body, const char* name, Members members) {
    return decode_document<std::vector<T>>(
        body, [&](auto& walker, auto& items) { walker.list(name, items, members); });
}

}  // namespace opensandbox::sdk::wire
