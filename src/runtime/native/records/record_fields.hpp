#pragma once

#include "base/clock.hpp"
#include "json/fields.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Records of JSON on disk, each with one list of members (json/fields.hpp).
namespace opensandbox::runtime::native {

/// Ports inside with those of the host that lead to them.
using PortPairs = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

struct PortPairsForm {
    using Stored = PortPairs;
    static Result<std::optional<PortPairs>> read(const json::object& from, std::string_view name);
    static json::value write(const PortPairs& ports);
};

/// Microseconds since the epoch.
struct TicksForm {
    using Stored = std::int64_t;
    static Result<std::optional<Timestamp>> read(const json::object& from, std::string_view name);
    static json::value write(Timestamp at) { return json::value(at.time_since_epoch().count()); }
};

/// Members that are absent stay as they are; invalid_argument names the first that has a wrong
/// type.
template <class T, class Members>
Result<T> read_record(const json::object& from, Members members) {
    return json::read_fields<T>(from, members, json::FieldReader::Absent::kept);
}

}  // namespace opensandbox::runtime::native
