#include "egress/vault/document_reader.hpp"

#include "base/json_string.hpp"
#include "egress/vault/secret.hpp"

#include <algorithm>

namespace opensandbox::egress {

namespace json = boost::json;

std::string member_place(const std::string& place, std::string_view name) {
    return place.empty() ? std::string(name) : place + "." + std::string(name);
}

std::string item_place(const std::string& place, std::size_t index) {
    return place + "[" + std::to_string(index) + "]";
}

Result<json::value> DocumentReader::parse(std::string_view body, std::size_t limit) {
    if (body.size() > limit) {
        return Error(ErrorCode::invalid_argument,
                     "JSON: must not be longer than " + std::to_string(limit) + " bytes");
    }
    const json::storage_ptr memory = json::make_shared_resource<WipedMemory>();
    json::parse_options options;
    options.max_depth = 16;
    json::stream_parser parser(memory, options);
    parser.reset(memory);
    boost::system::error_code ec;
    const std::size_t used = parser.write_some(body.data(), body.size(), ec);
    if (!ec && body.substr(used).find_first_not_of(" \t\r\n") != body.npos) {
        return Error(ErrorCode::invalid_argument,
                     "JSON: extra data at byte " + std::to_string(used));
    }
    if (!ec) parser.finish(ec);
    if (ec) {
        return Error(ErrorCode::invalid_argument,
                     "JSON: " + ec.message() + " at byte " + std::to_string(used));
    }
    return parser.release();
}

void DocumentReader::fail(const std::string& place, std::string_view what) {
    if (error_) return;
    error_ = place.empty() ? std::string(what) : place + ": " + std::string(what);
}

const json::object* DocumentReader::object(const json::value& value, const std::string& place,
                                           std::initializer_list<std::string_view> members) {
    if (failed()) return nullptr;
    if (!value.is_object()) {
        fail(place, "must be an object");
        return nullptr;
    }
    for (const auto& member : value.get_object()) {
        const std::string_view name = member.key();
        if (std::ranges::find(members, name) != members.end()) continue;
        // Somebody's mistake may have put a secret here: the name is shown short.
        std::string text = "unknown field ";
        append_json_string(text, name.substr(0, 24));
        fail(place, text);
        return nullptr;
    }
    return &value.get_object();
}

const json::value* DocumentReader::find(const json::object& object, std::string_view name) {
    const json::value* member = object.if_contains(name);
    return member && !member->is_null() ? member : nullptr;
}

std::optional<std::string_view> DocumentReader::text(const json::object& object,
                                                     std::string_view name,
                                                     const std::string& place) {
    const json::value* member = find(object, name);
    if (!member || failed()) return std::nullopt;
    if (!member->is_string()) {
        fail(member_place(place, name), "must be a string");
        return std::nullopt;
    }
    return std::string_view(member->get_string());
}

std::string_view DocumentReader::required_text(const json::object& object, std::string_view name,
                                               const std::string& place) {
    const auto value = text(object, name, place);
    const bool blank = !value || value->find_first_not_of(" \t\r\n") == value->npos;
    if (blank) fail(member_place(place, name), "must not be empty");
    return value.value_or(std::string_view());
}

const json::array* DocumentReader::list(const json::object& object, std::string_view name,
                                        const std::string& place, std::size_t limit) {
    const json::value* member = find(object, name);
    if (!member || failed()) return nullptr;
    if (!member->is_array()) {
        fail(member_place(place, name), "must be an array");
        return nullptr;
    }
    if (member->get_array().size() > limit) {
        fail(member_place(place, name),
             "must not have more than " + std::to_string(limit) + " items");
        return nullptr;
    }
    return &member->get_array();
}

std::vector<std::string> DocumentReader::texts(const json::object& object, std::string_view name,
                                               const std::string& place, std::size_t limit) {
    std::vector<std::string> out;
    const json::array* items = list(object, name, place, limit);
    if (!items) return out;
    for (std::size_t i = 0; i < items->size(); ++i) {
        if (!(*items)[i].is_string()) {
            fail(item_place(member_place(place, name), i), "must be a string");
            return {};
        }
        out.emplace_back((*items)[i].get_string());
    }
    return out;
}

}  // namespace opensandbox::egress
