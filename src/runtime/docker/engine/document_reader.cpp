#include "runtime/docker/engine/document_reader.hpp"

namespace opensandbox::runtime::docker {
namespace {

const json::object& empty_object() {
    static const json::object empty;
    return empty;
}

}  // namespace

void DocumentReader::blame(std::string reason) {
    if (!reason_) reason_ = std::move(reason);
}

template <class T>
T DocumentReader::keep(Result<std::optional<T>> read) {
    if (!read) {
        blame(read.error().message());
        return T();
    }
    return read->has_value() ? std::move(**read) : T();
}

std::string DocumentReader::text(const json::object& from, std::string_view name) {
    return keep(json::get_string(from, name));
}

std::int64_t DocumentReader::integer(const json::object& from, std::string_view name) {
    return keep(json::get_integer(from, name));
}

std::uint64_t DocumentReader::count(const json::object& from, std::string_view name) {
    const json::value* member = json::find(from, name);
    if (member != nullptr && member->is_uint64()) return member->get_uint64();
    std::int64_t number = integer(from, name);
    return number < 0 ? 0 : static_cast<std::uint64_t>(number);
}

bool DocumentReader::flag(const json::object& from, std::string_view name) {
    return keep(json::get_bool(from, name));
}

std::vector<std::string> DocumentReader::strings(const json::object& from, std::string_view name) {
    const json::value* member = json::find(from, name);
    if (member != nullptr && member->is_string()) return {std::string(member->get_string())};
    return keep(json::get_strings(from, name));
}

StringMap DocumentReader::string_map(const json::object& from, std::string_view name) {
    return keep(json::get_string_map(from, name));
}

std::optional<Timestamp> DocumentReader::time(const json::object& from, std::string_view name) {
    std::string written = text(from, name);
    if (written.empty() || written.starts_with("0001-01-01T00:00:00")) return std::nullopt;
    auto parsed = parse_rfc3339(written);
    if (!parsed) blame(std::string(name) + ": must be a time");
    return parsed;
}

const json::object& DocumentReader::object(const json::object& from, std::string_view name) {
    const json::value* member = json::find(from, name);
    if (member == nullptr) return empty_object();
    if (member->is_object()) return member->get_object();
    blame(std::string(name) + ": must be an object");
    return empty_object();
}

std::vector<const json::object*> DocumentReader::objects(const json::object& from,
                                                         std::string_view name) {
    const json::value* member = json::find(from, name);
    if (member == nullptr) return {};
    return objects(*member, name);
}

std::vector<const json::object*> DocumentReader::objects(const json::value& list,
                                                         std::string_view name) {
    std::vector<const json::object*> items;
    if (!list.is_array()) {
        blame(std::string(name) + ": must be an array");
        return items;
    }
    items.reserve(list.get_array().size());
    for (const json::value& item : list.get_array()) {
        if (item.is_object()) {
            items.push_back(&item.get_object());
        } else {
            blame(std::string(name) + ": must be an array of objects");
        }
    }
    return items;
}

std::string DocumentReader::required(const json::object& from, std::string_view name) {
    std::string found = text(from, name);
    if (found.empty()) blame(std::string(name) + ": must be there");
    return found;
}

const json::object& DocumentReader::whole(const json::value& document) {
    if (document.is_object()) return document.get_object();
    blame("must be an object");
    return empty_object();
}

Status DocumentReader::status() const {
    if (!reason_) return Status();
    return Error(ErrorCode::bad_gateway, "answered with a malformed document: " + *reason_);
}

}  // namespace opensandbox::runtime::docker
