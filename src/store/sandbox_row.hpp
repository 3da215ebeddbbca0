#pragma once

#include "store/database.hpp"
#include "store/sandbox_store.hpp"

#include <string>

/// A sandbox as a row of its table.
namespace opensandbox::store {

/// "id, image, …": what bind_row() binds and read_row() reads, in their order.
std::string sandbox_columns();
/// "?,?,…": as many as there are columns.
std::string sandbox_placeholders();

void bind_row(Statement& insert, const SandboxRecord& record);
/// Fails when a column holds what bind_row() never writes.
Result<SandboxRecord> read_row(const Statement& row);

}  // namespace opensandbox::store
