#include "base/unique_fd.hpp"
#include "server/config/config.hpp"
#include "server/role/serve.hpp"

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
    "usage: opensandbox init-config [PATH] [--example KIND] [--force]\n"
    "Writes a configuration to PATH (default: ~/.sandbox.toml): every key, commented out.\n"
    "  --example KIND   a short one instead: native, docker or docker-zh\n"
    "  --force          overwrite an existing file\n";

int failed(const std::filesystem::path& path, const std::string& why) {
    std::fprintf(stderr, "Failed to write config template: %s: %s\n", path.c_str(), why.c_str());
    return 1;
}

int write_config(const std::filesystem::path& path, bool force, const std::string& kind) {
    std::string_view text = kind.empty() ? config_skeleton() : example_config(kind);
    // Private, because the place for the API key is in it.
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL);
    UniqueFd file(::open(path.c_str(), flags, 0600));
    if (!file && errno == EEXIST) return failed(path, "exists already; --force overwrites it");
    if (!file) return failed(path, std::strerror(errno));
    while (!text.empty()) {
        ssize_t written = ::write(file.get(), text.data(), text.size());
        if (written < 0) return failed(path, std::strerror(errno));
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    if (kind.empty()) {
        std::printf("Wrote full config skeleton to %s\n", path.c_str());
    } else {
        std::printf("Wrote example config (%s) to %s\n", kind.c_str(), path.c_str());
    }
    return 0;
}

}  // namespace

int init_config_main(int argc, char** argv) {
    bool force = false;
    std::string path;
    std::string kind;
    for (int i = 1; i < argc; ++i) {
        std::string argument = argv[i];
        if (argument == "--help" || argument == "-h") {
            std::fputs(kUsage, stdout);
            return 0;
        }
        if (argument == "--force") {
            force = true;
        } else if (argument == "--example" && i + 1 < argc) {
            kind = argv[++i];
        } else if (argument.starts_with("--example=")) {
            kind = argument.substr(argument.find('=') + 1);
        } else if (argument.starts_with("-") || !path.empty()) {
            std::fprintf(stderr, "init-config: unexpected argument '%s'\n%s", argv[i], kUsage);
            return 2;
        } else {
            path = argument;
        }
    }
    if (!kind.empty() && example_config(kind).empty()) {
        std::fprintf(stderr, "init-config: --example: '%s' must be native, docker or docker-zh\n",
                     kind.c_str());
        return 2;
    }
    if (path.empty()) {
        const char* home = std::getenv("HOME");
        path = std::string(home ? home : "") + "/.sandbox.toml";
    }
    return write_config(path, force, kind);
}

}  // namespace opensandbox::server
