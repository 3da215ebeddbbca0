#pragma once

#include "base/clock.hpp"
#include "model/json_text.hpp"
#include "store/database.hpp"
#include "store/sandbox_store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the columns of a row hold, and a sandbox's row as a whole.
namespace opensandbox::store {

// Maps and lists inside a column.

std::string map_to_json(const model::StringMap& map);
std::string list_to_json(const std::vector<std::string>& list);
/// Empty when the text is not what its counterpart writes.
std::optional<model::StringMap> map_from_json(std::string_view text);
std::optional<std::vector<std::string>> list_from_json(std::string_view text);

// Times inside a column: microseconds since the epoch.

inline std::int64_t micros(Timestamp at) {
    return at.time_since_epoch().count();
}

inline std::optional<std::int64_t> micros(const std::optional<Timestamp>& at) {
    if (!at) return std::nullopt;
    return micros(*at);
}

inline Timestamp from_micros(std::int64_t number) {
    return Timestamp(std::chrono::microseconds(number));
}

// A sandbox as a row of its table.

using PublishedPorts = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

/// "8080:40001,5432:40002"; empty for text that ports_to_text() never writes.
std::string ports_to_text(const PublishedPorts& ports);
std::optional<PublishedPorts> ports_from_text(std::string_view text);

/// "id, image, …": what bind_row() binds and read_row() reads, in their order.
std::string sandbox_columns();
/// "?,?,…": as many as there are columns.
std::string sandbox_placeholders();

void bind_row(Statement& insert, const SandboxRecord& record);
/// Fails when a column holds what bind_row() never writes.
Result<SandboxRecord> read_row(const Statement& row);

}  // namespace opensandbox::store
