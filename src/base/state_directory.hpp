#pragma once

#include <filesystem>

namespace opensandbox {

/// Where a server keeps everything unless told otherwise: /var/lib/opensandbox as root, else
/// ~/.opensandbox.
std::filesystem::path default_state_directory();

/// The private file (mode 0600) with the API key that `serve` makes at its first start and the
/// command line finds by itself.
std::filesystem::path api_key_file(const std::filesystem::path& state_directory);

}  // namespace opensandbox
