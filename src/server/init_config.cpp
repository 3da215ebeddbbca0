#include "base/unique_fd.hpp"
#include "server/config.hpp"
#include "server/serve.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace opensandbox::server {
namespace {

constexpr const char* kUsage =
    "usage: opensandbox init-config [PATH] [--force]\n"
    "Writes a commented example configuration to PATH (default: ~/.sandbox.toml).\n"
    "  --force   overwrite an existing file\n";

int failed(const std::filesystem::path& path, const std::string& why) {
    std::fprintf(stderr, "Failed to write config template: %s: %s\n", path.c_str(), why.c_str());
    return 1;
}

int write_example(const std::filesystem::path& path, bool force) {
    // Private, because the place for the API key is in it.
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL);
    UniqueFd file(::open(path.c_str(), flags, 0600));
    if (!file && errno == EEXIST) return failed(path, "exists already; --force overwrites it");
    if (!file) return failed(path, std::strerror(errno));
    std::string_view text = example_config();
    while (!text.empty()) {
        ssize_t written = ::write(file.get(), text.data(), text.size());
        if (written < 0) return failed(path, std::strerror(errno));
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    std::printf("Wrote example config to %s\n", path.c_str());
    return 0;
}

}  // namespace

int init_config_main(int argc, char** argv) {
    bool force = false;
    std::string path;
    for (int i = 1; i < argc; ++i) {
        std::string argument = argv[i];
        if (argument == "--help" || argument == "-h") {
            std::fputs(kUsage, stdout);
            return 0;
        }
        if (argument == "--force") {
            force = true;
        } else if (argument.starts_with("-") || !path.empty()) {
            std::fprintf(stderr, "init-config: unexpected argument '%s'\n%s", argv[i], kUsage);
            return 2;
        } else {
            path = argument;
        }
    }
    if (path.empty()) {
        const char* home = std::getenv("HOME");
        path = std::string(home ? home : "") + "/.sandbox.toml";
    }
    return write_example(path, force);
}

}  // namespace opensandbox::server
