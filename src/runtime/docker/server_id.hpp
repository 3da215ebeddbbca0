#pragma once

#include "base/error.hpp"

#include <filesystem>
#include <string>

namespace opensandbox::runtime::docker {

/// The id of a state directory, from its file `server-id`, made at the first call: what tells our
/// objects at a shared engine from those of other servers. Blocks.
Result<std::string> server_id(const std::filesystem::path& state_directory);

}  // namespace opensandbox::runtime::docker
