#include "base/state_directory.hpp"

#include <cstdlib>
#include <unistd.h>

namespace opensandbox {

std::filesystem::path default_state_directory() {
    if (::geteuid() == 0) return "/var/lib/opensandbox";
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home ? home : "/") / ".opensandbox";
}

std::filesystem::path api_key_file(const std::filesystem::path& state_directory) {
    return state_directory / "api-key";
}

}  // namespace opensandbox
