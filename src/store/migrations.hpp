#pragma once

#include "store/database.hpp"

namespace opensandbox::store {

/// Runs the steps that the file has not seen yet, each in a transaction; the version is kept in
/// `user_version`. Fails with `unsupported` when the file is newer than this program.
Status migrate(Database& database);

}  // namespace opensandbox::store
