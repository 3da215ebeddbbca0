#pragma once

#include "base/clock.hpp"
#include "json/document.hpp"

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// One list of members a document, walked by all that is made of it: its reader, its writer, rows
/// for people, a schema. A list is a function that puts every member into a walker:
///
///     constexpr auto kImageMembers = [](auto& walker, auto& image) {
///         walker.put("reference", image.reference);
///         walker.put(json::Field("createdAt", "created_at").may_lack(), image.created_at);
///     };
///     json::write_fields(image, kImageMembers);
namespace opensandbox::json {

enum Role : unsigned { kRead = 1, kWritten = 2, kRow = 4, kSchema = 8 };

/// A member of a document: its names, and what its roles must know besides its type. Members of the
/// type std::optional may lack in what is read and are null in what is written; lists and maps may
/// lack; all others must be there.
struct Field {
    // Most members are no more than a name.
    constexpr Field(const char* name) : read(name), written(name) {}  // NOLINT(*-explicit-*)
    constexpr explicit Field(std::string_view name) : read(name), written(name) {}
    constexpr Field(const char* read_as, const char* written_as)
        : read(read_as), written(written_as) {}

    std::string_view read;         ///< its name in what is read
    std::string_view written;      ///< its name in what is written
    std::string_view description;  ///< of a schema
    std::string_view row;          ///< its name among the rows, where that is not the written one
    std::string_view row_place;    ///< the row that it stands before; empty: the last so far
    unsigned roles = kRead | kWritten | kRow | kSchema;
    bool lacking = false;       ///< it stays as it is when it is not there
    bool null_empty = false;    ///< it is written as null when it is empty
    bool absent_empty = false;  ///< it is not written when it is empty
    bool read_within = false;   ///< only in what is read is this object around its members
    bool in_parts = false;      ///< every member of this object is a row of its own

    [[nodiscard]] constexpr bool has(Role role) const { return (roles & role) != 0; }

    [[nodiscard]] constexpr Field help(std::string_view text) const {
        return with([&](Field& field) { field.description = text; });
    }
    [[nodiscard]] constexpr Field as_row(std::string_view name) const {
        return with([&](Field& field) { field.row = name; });
    }
    [[nodiscard]] constexpr Field before_row(std::string_view name) const {
        return with([&](Field& field) { field.row_place = name; });
    }
    [[nodiscard]] constexpr Field only(unsigned wanted) const {
        return with([&](Field& field) { field.roles = wanted; });
    }
    [[nodiscard]] constexpr Field without(unsigned unwanted) const {
        return with([&](Field& field) { field.roles &= ~unwanted; });
    }
    [[nodiscard]] constexpr Field may_lack() const {
        return with([](Field& field) { field.lacking = true; });
    }
    [[nodiscard]] constexpr Field null_if_empty() const {
        return with([](Field& field) { field.null_empty = true; });
    }
    [[nodiscard]] constexpr Field absent_if_empty() const {
        return with([](Field& field) { field.absent_empty = true; });
    }
    [[nodiscard]] constexpr Field around() const {
        return with([](Field& field) { field.read_within = true; });
    }
    [[nodiscard]] constexpr Field parts() const {
        return with([](Field& field) { field.in_parts = true; });
    }

  private:
    template <class Change>
    [[nodiscard]] constexpr Field with(Change change) const {
        Field changed = *this;
        change(changed);
        return changed;
    }
};

/// How a type stands in JSON: `Stored` is what schemas call it, read() is empty for what is absent
/// and an error that names the member for what is something else. A list names another form where
/// the type alone does not tell: walker.put("mode", file.mode, octal).
template <class T>
struct Form;

template <>
struct Form<std::string> {
    using Stored = std::string;
    static auto read(const object& from, std::string_view name) { return get_string(from, name); }
    static value write(const std::string& text) { return value(text); }
};

template <>
struct Form<bool> {
    using Stored = bool;
    static auto read(const object& from, std::string_view name) { return get_bool(from, name); }
    static value write(bool flag) { return value(flag); }
};

template <>
struct Form<double> {
    using Stored = double;
    static auto read(const object& from, std::string_view name) { return get_number(from, name); }
    static value write(double number) { return value(number); }
};

template <std::integral T>
struct Form<T> {
    using Stored = std::int64_t;
    static Result<std::optional<T>> read(const object& from, std::string_view name) {
        auto found = get_integer(from, name);
        if (!found) return found.error();
        if (!*found) return std::optional<T>();
        if (!std::in_range<T>(**found)) {
            return Error(
                ErrorCode::invalid_argument,
                std::string(name) + (**found < 0 ? ": must not be negative" : ": is too large"));
        }
        return std::optional<T>(static_cast<T>(**found));
    }
    static value write(T number) { return value(number); }
};

/// RFC 3339.
template <>
struct Form<Timestamp> {
    using Stored = Timestamp;
    static Result<std::optional<Timestamp>> read(const object& from, std::string_view name);
    static value write(Timestamp time);
};

template <>
struct Form<std::vector<std::string>> {
    using Stored = std::vector<std::string>;
    static auto read(const object& from, std::string_view name) { return get_strings(from, name); }
    static value write(const std::vector<std::string>& texts) { return string_array(texts); }
};

template <>
struct Form<std::vector<std::int64_t>> {
    using Stored = std::vector<std::int64_t>;
    static Result<std::optional<Stored>> read(const object& from, std::string_view name);
    static value write(const Stored& numbers) { return array(numbers.begin(), numbers.end()); }
};

/// In the order of the document.
template <>
struct Form<std::vector<std::pair<std::string, std::string>>> {
    using Stored = std::map<std::string, std::string>;
    static auto read(const object& from, std::string_view name) {
        return get_string_map(from, name);
    }
    static value write(const std::vector<std::pair<std::string, std::string>>& pairs) {
        return string_object(pairs);
    }
};

template <>
struct Form<std::map<std::string, std::string>> {
    using Stored = std::map<std::string, std::string>;
    static Result<std::optional<Stored>> read(const object& from, std::string_view name);
    static value write(const Stored& texts) { return string_object(texts); }
};

template <class T>
concept Collection = requires(const T& member) { member.begin(); } && !std::same_as<T, std::string>;

/// What a member is when it is there.
template <class T>
struct Present {
    using Type = T;
};
template <class T>
struct Present<std::optional<T>> {
    using Type = T;
};
template <class T>
using StandardForm = Form<typename Present<T>::Type>;

/// Reads members of one object and remembers the first that is missing or of another type.
class FieldReader {
  public:
    enum class Absent : std::uint8_t { refused, kept };
    explicit FieldReader(const object& from, Absent absent = Absent::refused)
        : from_(&from), absent_(absent) {}

    template <class T, class Shape = StandardForm<T>>
    void put(const Field& field, T& member, Shape shape = {}) {
        if (field.has(kRead)) set(field, member, shape.read(*from_, field.read));
    }

    /// An object within this one: walk(reader, member).
    template <class T, class Walk>
    void object(const Field& field, T& member, Walk walk) {
        if (const auto* inner = inner_object(field, field.lacking))
            read(field, *inner, member, walk);
    }
    template <class T, class Walk>
    void object(const Field& field, std::optional<T>& member, Walk walk) {
        if (const auto* inner = inner_object(field, true)) {
            read(field, *inner, member.emplace(), walk);
        }
    }

    /// An object that is there or null; what is read says so by itself.
    template <class T, class Walk>
    void object_if(const Field& field, bool /*there*/, T& member, Walk walk) {
        if (const auto* inner = inner_object(field, true)) read(field, *inner, member, walk);
    }

    /// A list of objects.
    template <class T, class Walk>
    void list(const Field& field, std::vector<T>& members, Walk walk) {
        const array* items = inner_array(field);
        if (!items) return;
        for (const value& item : *items) {
            if (!item.is_object()) return fail(field.read, "not objects");
            read(field, item.get_object(), members.emplace_back(), walk);
        }
    }

    /// Whether what follows belongs to the document, which its first member tells.
    [[nodiscard]] bool given(std::string_view name, bool& present) const {
        present = find(*from_, name) != nullptr;
        return present;
    }

    /// What must hold besides the types; only readers look.
    void check(bool holds, std::string_view name, std::string_view rule) {
        if (!holds) fail(name, rule);
    }

    void fail(std::string_view name, std::string_view rule);
    [[nodiscard]] bool failed() const { return !problem_.empty(); }
    /// The first problem as "member: rule", and the objects that it lies in as "outer: inner".
    [[nodiscard]] const std::string& problem() const { return problem_; }
    [[nodiscard]] const std::string& place() const { return place_; }
    /// `invalid_argument` with both; only when failed().
    [[nodiscard]] Error error() const;

  private:
    template <class T, class Found>
    void set(const Field& field, T& member, Result<std::optional<Found>> found) {
        if (!found) {
            if (!failed()) problem_ = found.error().message();
        } else if (*found) {
            Found& there = **found;
            member = std::move(there);
        } else if (must_be_there(field) && !Collection<T> &&
                   std::same_as<T, typename Present<T>::Type>) {
            fail(field.read, "is missing");
        }
    }

    template <class T, class Walk>
    void read(const Field& field, const json::object& from, T& member, Walk walk) {
        FieldReader inner(from, absent_);
        walk(inner, member);
        take_problem(inner, field.read);
    }

    [[nodiscard]] bool must_be_there(const Field& field) const {
        return !field.lacking && absent_ == Absent::refused;
    }
    const json::object* inner_object(const Field& field, bool may_lack);
    const array* inner_array(const Field& field);
    void take_problem(const FieldReader& inner, std::string_view name);

    const json::object* from_;
    Absent absent_;
    std::string problem_;
    std::string place_;
};

/// Members in the order of their list.
class FieldWriter {
  public:
    template <class T, class Shape = StandardForm<T>>
    void put(const Field& field, const T& member, Shape shape = {}) {
        if (!field.has(kWritten)) return;
        if constexpr (requires { member.empty(); }) {
            if (field.absent_empty && member.empty()) return;
        }
        out_[field.written] = written(field, member, shape);
    }

    template <class T, class Walk>
    void object(const Field& field, const T& member, Walk walk) {
        if (field.read_within) return walk(*this, member);
        if (!field.has(kWritten)) return;
        FieldWriter inner;
        walk(inner, member);
        out_[field.written] = std::move(inner).take();
    }
    template <class T, class Walk>
    void object(const Field& field, const std::optional<T>& member, Walk walk) {
        if (member) {
            object(field, *member, walk);
        } else if (field.has(kWritten)) {
            out_[field.written] = nullptr;
        }
    }
    template <class T, class Walk>
    void object_if(const Field& field, bool there, const T& member, Walk walk) {
        if (there) {
            object(field, member, walk);
        } else if (field.has(kWritten)) {
            out_[field.written] = nullptr;
        }
    }

    template <class T, class Walk>
    void list(const Field& field, const std::vector<T>& members, Walk walk) {
        if (!field.has(kWritten)) return;
        array items;
        for (const T& member : members) {
            FieldWriter inner;
            walk(inner, member);
            items.emplace_back(std::move(inner).take());
        }
        out_[field.written] = std::move(items);
    }

    [[nodiscard]] static bool given(std::string_view /*name*/, bool present) { return present; }
    static void check(bool /*holds*/, std::string_view /*name*/, std::string_view /*rule*/) {}

    [[nodiscard]] json::object take() && { return std::move(out_); }

    /// One member as it is written.
    template <class T, class Shape>
    static value written(const Field& field, const T& member, Shape shape) {
        if constexpr (requires { member.empty(); }) {
            if (field.null_empty && member.empty()) return {};
        }
        return shape.write(member);
    }
    template <class T, class Shape>
    static value written(const Field& field, const std::optional<T>& member, Shape shape) {
        return member ? written(field, *member, shape) : value();
    }

  private:
    json::object out_;
};

/// Names and values for people: objects in one cell, or their members as rows named
/// "object_member".
class FieldRows {
  public:
    FieldRows() = default;

    template <class T, class Shape = StandardForm<T>>
    void put(const Field& field, const T& member, Shape shape = {}) {
        if (field.has(kRow)) add(field, FieldWriter::written(field, member, shape));
    }

    template <class T, class Walk>
    void object(const Field& field, const T& member, Walk walk) {
        if (field.read_within) return walk(*this, member);
        if (!field.has(kRow)) return;
        if (field.in_parts) return add_parts(field, true, member, walk);
        FieldWriter cell;
        walk(cell, member);
        add(field, std::move(cell).take());
    }
    template <class T, class Walk>
    void object(const Field& field, const std::optional<T>& member, Walk walk) {
        object_if(field, member.has_value(), member ? *member : T(), walk);
    }
    template <class T, class Walk>
    void object_if(const Field& field, bool there, const T& member, Walk walk) {
        if (there) return object(field, member, walk);
        if (!field.has(kRow)) return;
        if (field.in_parts) return add_parts(field, false, member, walk);
        add(field, nullptr);
    }

    template <class T, class Walk>
    void list(const Field& field, const std::vector<T>& members, Walk walk) {
        if (!field.has(kRow)) return;
        FieldWriter cell;
        cell.list(field, members, walk);
        add(field, std::move(cell).take().at(field.written));
    }

    static void check(bool /*holds*/, std::string_view /*name*/, std::string_view /*rule*/) {}

    [[nodiscard]] json::object take() &&;

  private:
    using Row = std::pair<std::string, value>;
    FieldRows(std::string prefix, bool there) : prefix_(std::move(prefix)), there_(there) {}

    template <class T, class Walk>
    void add_parts(const Field& field, bool there, const T& member, Walk walk) {
        FieldRows inner(name_of(field) + "_", there && there_);
        walk(inner, member);
        insert(field, std::move(inner.rows_));
    }
    [[nodiscard]] std::string name_of(const Field& field) const;
    void add(const Field& field, value cell);
    void insert(const Field& field, std::vector<Row> rows);

    std::string prefix_;
    bool there_ = true;  ///< else the object is absent, and all of its rows are null
    std::vector<Row> rows_;
};

template <class T, class Walk>
object write_fields(const T& document, Walk walk) {
    FieldWriter writer;
    walk(writer, document);
    return std::move(writer).take();
}

template <class T, class Walk>
object row_fields(const T& document, Walk walk) {
    FieldRows rows;
    walk(rows, document);
    return std::move(rows).take();
}

/// `invalid_argument` names the member.
template <class T, class Walk>
Result<T> read_fields(const object& from, Walk walk,
                      FieldReader::Absent absent = FieldReader::Absent::refused) {
    FieldReader reader(from, absent);
    T document;
    walk(reader, document);
    if (reader.failed()) return reader.error();
    return document;
}

}  // namespace opensandbox::json
