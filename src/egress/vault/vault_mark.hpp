#pragma once

#include "base/error.hpp"

#include <filesystem>

/// A file that says that a vault is held, for a process that comes after one that died with it. It
/// has nothing of what is in the vault.
namespace opensandbox::egress {

/// Makes it, or removes it. Blocks.
Status mark_vault(const std::filesystem::path& file, bool held);
[[nodiscard]] bool is_vault_marked(const std::filesystem::path& file);

}  // namespace opensandbox::egress
