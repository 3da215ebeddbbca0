#pragma once

#include "store/database.hpp"
#include "store/sandbox_store.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A sandbox as a row of its table.
namespace opensandbox::store {

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
