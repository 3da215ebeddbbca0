#pragma once

#include "base/clock.hpp"
#include "json/document.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Records of JSON on disk: one list of named members a record, walked by its writer and its reader
/// alike.
namespace opensandbox::runtime::native {

/// Ports inside with those of the host that lead to them.
using PortPairs = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

class RecordWriter {
  public:
    void put(std::string_view name, const std::string& text) { out_[name] = text; }
    void put(std::string_view name, const std::vector<std::string>& texts) {
        out_[name] = json::string_array(texts);
    }
    void put(std::string_view name,
             const std::vector<std::pair<std::string, std::string>>& variables) {
        out_[name] = json::string_object(variables);
    }
    void put(std::string_view name, const PortPairs& ports) {
        json::array pairs;
        for (const auto& [inside, outside] : ports)
            pairs.push_back({inside, outside});
        out_[name] = std::move(pairs);
    }
    void put(std::string_view name, Timestamp at) { out_[name] = at.time_since_epoch().count(); }
    template <class T>
        requires std::is_arithmetic_v<T>
    void put(std::string_view name, T value) {
        out_[name] = value;
    }
    /// A record within this one.
    template <class T, class Walk>
    void record(std::string_view name, T& inner, Walk walk) {
        RecordWriter writer;
        walk(writer, inner);
        out_[name] = std::move(writer).take();
    }
    /// Whether what follows belongs to the record; its first member tells the reader.
    [[nodiscard]] static bool given(std::string_view /*name*/, bool present) { return present; }

    [[nodiscard]] json::object take() && { return std::move(out_); }

  private:
    json::object out_;
};

/// Members that are absent stay as they are; the first that has a wrong type is remembered.
class RecordReader {
  public:
    explicit RecordReader(const json::object& from) : from_(&from) {}

    void put(std::string_view name, std::string& into) {
        keep(json::get_string(*from_, name), into);
    }
    void put(std::string_view name, std::vector<std::string>& into) {
        keep(json::get_strings(*from_, name), into);
    }
    void put(std::string_view name, std::vector<std::pair<std::string, std::string>>& into) {
        keep(json::get_string_map(*from_, name), into);
    }
    void put(std::string_view name, PortPairs& into);
    void put(std::string_view name, Timestamp& into) {
        std::int64_t ticks = into.time_since_epoch().count();
        keep(json::get_integer(*from_, name), ticks);
        into = Timestamp(std::chrono::microseconds(ticks));
    }
    void put(std::string_view name, bool& into) { keep(json::get_bool(*from_, name), into); }
    void put(std::string_view name, double& into) { keep(json::get_number(*from_, name), into); }
    void put(std::string_view name, std::uint64_t& into) {
        auto number = static_cast<std::int64_t>(into);
        keep(json::get_integer(*from_, name), number);
        into = static_cast<std::uint64_t>(number);
    }
    template <class T, class Walk>
    void record(std::string_view name, T& into, Walk walk) {
        const json::value* found = json::find(*from_, name);
        if (!found || !found->is_object()) return fail(name, "must be an object");
        RecordReader inner(found->get_object());
        walk(inner, into);
        if (status_ && !inner.status_) status_ = inner.status_.error().within(name);
    }
    [[nodiscard]] bool given(std::string_view name, bool& present) const {
        present = json::find(*from_, name) != nullptr;
        return present;
    }

    [[nodiscard]] const Status& status() const { return status_; }

  private:
    void fail(std::string_view name, std::string_view rule) {
        if (!status_) return;
        status_ = Error(ErrorCode::invalid_argument, std::string(name) + ": " + std::string(rule));
    }

    template <class T>
    void keep(Result<std::optional<T>> found, T& into) {
        if (!found) {
            if (status_) status_ = found.error();
        } else if (*found) {
            into = std::move(**found);
        }
    }

    const json::object* from_;
    Status status_;
};

inline void RecordReader::put(std::string_view name, PortPairs& into) {
    const json::value* list = json::find(*from_, name);
    if (!list) return;
    const auto port_of = [](const json::value& value) -> std::uint16_t {
        const std::int64_t number = value.is_int64() ? value.get_int64() : 0;
        return number > 0 && number <= 65'535 ? static_cast<std::uint16_t>(number) : 0;
    };
    constexpr std::string_view rule = "must be pairs of ports";
    if (!list->is_array()) return fail(name, rule);
    for (const json::value& item : list->get_array()) {
        if (!item.is_array() || item.get_array().size() != 2) return fail(name, rule);
        const auto& pair = item.get_array();
        into.emplace_back(port_of(pair[0]), port_of(pair[1]));
        if (into.back().first == 0 || into.back().second == 0) return fail(name, rule);
    }
}

/// `walk` puts every member of a record into an archive: walk(archive, record).
template <class T, class Walk>
json::object write_record(const T& record, Walk walk) {
    RecordWriter writer;
    // The walk is shared with the reader and takes mutable members; the writer changes none.
    walk(writer, const_cast<T&>(record));
    return std::move(writer).take();
}

/// invalid_argument names the member.
template <class T, class Walk>
Result<T> read_record(const json::object& from, Walk walk) {
    RecordReader reader(from);
    T record;
    walk(reader, record);
    if (!reader.status()) return reader.status().error();
    return record;
}

}  // namespace opensandbox::runtime::native
