#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

namespace {

const json::object kNoObject;

Error not_a(std::string_view what, const std::string& why) {
    return {ErrorCode::protocol, "the answer is not " + std::string(what) + ": " + why};
}

}  // namespace

template <class T>
std::optional<T> ObjectReader::keep(opensandbox::Result<std::optional<T>> read) {
    if (read) return std::move(*read);
    if (problem_.empty()) problem_ = read.error().message();
    return std::nullopt;
}

void ObjectReader::fail(std::string_view name, std::string_view rule) {
    if (problem_.empty()) problem_ = std::string(name) + ": " + std::string(rule);
}

Error ObjectReader::error() const {
    return {ErrorCode::protocol, "the answer breaks its format: " + problem_};
}

std::optional<std::string> ObjectReader::optional_string(std::string_view name) {
    return keep(json::get_string(from_, name));
}

std::string ObjectReader::string(std::string_view name) {
    auto read = optional_string(name);
    if (!read) fail(name, "is missing");
    return read.value_or(std::string());
}

std::optional<std::int64_t> ObjectReader::optional_integer(std::string_view name) {
    return keep(json::get_integer(from_, name));
}

std::int64_t ObjectReader::integer(std::string_view name) {
    auto read = optional_integer(name);
    if (!read) fail(name, "is missing");
    return read.value_or(0);
}

std::optional<bool> ObjectReader::optional_boolean(std::string_view name) {
    return keep(json::get_bool(from_, name));
}

bool ObjectReader::boolean(std::string_view name) {
    auto read = optional_boolean(name);
    if (!read) fail(name, "is missing");
    return read.value_or(false);
}

std::optional<Timestamp> ObjectReader::optional_time(std::string_view name) {
    auto text = optional_string(name);
    if (!text) return std::nullopt;
    auto time = parse_rfc3339(*text);
    if (!time) fail(name, "must be an RFC 3339 time");
    return time;
}

Timestamp ObjectReader::time(std::string_view name) {
    auto read = optional_time(name);
    if (!read) fail(name, "is missing");
    return read.value_or(Timestamp());
}

std::vector<std::string> ObjectReader::strings(std::string_view name) {
    return keep(json::get_strings(from_, name)).value_or(std::vector<std::string>());
}

const json::object* ObjectReader::optional_object(std::string_view name) {
    const json::value* member = json::find(from_, name);
    if (!member) return nullptr;
    if (!member->is_object()) {
        fail(name, "must be an object");
        return nullptr;
    }
    return &member->get_object();
}

const json::object& ObjectReader::object(std::string_view name) {
    const json::object* member = optional_object(name);
    if (!member) fail(name, "is missing");
    return member ? *member : kNoObject;
}

Error broken_answer(const json::FieldReader& reader) {
    Error error(ErrorCode::protocol, "the answer breaks its format: " + reader.problem());
    return reader.place().empty() ? error : error.within(reader.place());
}

Result<json::object> parse_object(std::string_view body) {
    auto document = json::parse(body);
    if (!document) return not_a("a JSON object", document.error().message());
    if (!document->is_object()) return not_a("a JSON object", "it is another JSON value");
    return std::move(document->get_object());
}

Result<json::array> parse_array(std::string_view body) {
    auto document = json::parse(body);
    if (!document) return not_a("a JSON array", document.error().message());
    if (!document->is_array()) return not_a("a JSON array", "it is another JSON value");
    return std::move(document->get_array());
}

}  // namespace opensandbox::sdk::wire
