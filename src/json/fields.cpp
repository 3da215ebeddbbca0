#include "json/fields.hpp"

#include <algorithm>
#include <iterator>

namespace opensandbox::json {

namespace {

Error broken(std::string_view name, std::string_view rule) {
    return {ErrorCode::invalid_argument, std::string(name) + ": " + std::string(rule)};
}

}  // namespace

Result<std::optional<Timestamp>> Form<Timestamp>::read(const object& from, std::string_view name) {
    auto text = get_string(from, name);
    if (!text) return text.error();
    if (!*text) return std::optional<Timestamp>();
    auto time = parse_rfc3339(**text);
    if (!time) return broken(name, "must be an RFC 3339 time");
    return time;
}

value Form<Timestamp>::write(Timestamp time) {
    return value(to_rfc3339(time));
}

Result<std::optional<std::vector<std::int64_t>>> Form<std::vector<std::int64_t>>::read(
    const object& from, std::string_view name) {
    const value* list = find(from, name);
    if (!list) return std::optional<Stored>();
    if (!list->is_array()) return broken(name, "must be an array");
    Stored numbers;
    for (const value& item : list->get_array()) {
        if (!item.is_int64()) return broken(name, "not whole numbers");
        numbers.push_back(item.get_int64());
    }
    return std::optional<Stored>(std::move(numbers));
}

Result<std::optional<std::map<std::string, std::string>>>
Form<std::map<std::string, std::string>>::read(const object& from, std::string_view name) {
    auto pairs = get_string_map(from, name);
    if (!pairs) return pairs.error();
    if (!*pairs) return std::optional<Stored>();
    Stored texts;
    for (auto& [key, text] : **pairs)
        texts.insert_or_assign(std::move(key), std::move(text));
    return std::optional<Stored>(std::move(texts));
}

void FieldReader::fail(std::string_view name, std::string_view rule) {
    if (!failed()) problem_ = std::string(name) + ": " + std::string(rule);
}

Error FieldReader::error() const {
    Error error(ErrorCode::invalid_argument, problem_);
    return place_.empty() ? error : error.within(place_);
}

const object* FieldReader::inner_object(const Field& field, bool may_lack) {
    if (!field.has(kRead)) return nullptr;
    const value* member = find(*from_, field.read);
    if (member && member->is_object()) return &member->get_object();
    if (member) {
        fail(field.read, "must be an object");
    } else if (!may_lack && absent_ == Absent::refused) {
        fail(field.read, "is missing");
    }
    return nullptr;
}

const array* FieldReader::inner_array(const Field& field) {
    if (!field.has(kRead)) return nullptr;
    const value* member = find(*from_, field.read);
    if (member && member->is_array()) return &member->get_array();
    if (member) {
        fail(field.read, "must be an array");
    } else if (must_be_there(field)) {
        fail(field.read, "is missing");
    }
    return nullptr;
}

void FieldReader::take_problem(const FieldReader& inner, std::string_view name) {
    if (failed() || !inner.failed()) return;
    problem_ = inner.problem_;
    place_ = std::string(name);
    if (!inner.place_.empty()) place_ += ": " + inner.place_;
}

object FieldRows::take() && {
    json::object out;
    for (auto& [name, cell] : rows_)
        out[name] = std::move(cell);
    return out;
}

std::string FieldRows::name_of(const Field& field) const {
    return field.row.empty() ? prefix_ + std::string(field.written) : std::string(field.row);
}

void FieldRows::add(const Field& field, value cell) {
    std::vector<Row> rows;
    rows.emplace_back(name_of(field), there_ ? std::move(cell) : value());
    insert(field, std::move(rows));
}

void FieldRows::insert(const Field& field, std::vector<Row> rows) {
    const auto place = std::ranges::find(rows_, field.row_place, &Row::first);
    rows_.insert(place, std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
}

}  // namespace opensandbox::json
