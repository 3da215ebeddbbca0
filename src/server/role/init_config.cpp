#include "base/unique_fd.hpp"
#include "options/help.hpp"
#include "options/line_reader.hpp"
#include "options/setters.hpp"
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

constexpr options::Grammar kInitGrammar{.words = 1, .unknown = "unexpected argument '{word}'"};

int failed(const std::filesystem::path& path, const std::string& why) {
    std::fprintf(stderr, "Failed to write config template: %s: %s\n", path.c_str(), why.c_str());
    return 1;
}

int write_config(const std::filesystem::path& path, bool force, const std::string& kind) {
    const std::string whole = kind.empty() ? config_skeleton() : std::string(example_config(kind));
    // Private, because the place for the API key is in it.
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL);
    UniqueFd file(::open(path.c_str(), flags, 0600));
    if (!file && errno == EEXIST) return failed(path, "exists already; --force overwrites it");
    if (!file) return failed(path, std::strerror(errno));
    std::string_view text = whole;
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
    bool help = false;
    bool force = false;
    std::string kind;
    const std::vector<options::Option> table{
        options::bound({"--example", 0, "KIND", "a short one instead: native, docker or docker-zh"},
                       options::text(kind)),
        options::bound({"--force", 0, "", "overwrite an existing file"},
                       options::constant(force, true)),
        options::bound({"--help", 'h'}, options::constant(help, true)),
    };
    constexpr std::size_t kColumn = 19;
    const std::string usage =
        "usage: opensandbox init-config [PATH] [--example KIND] [--force]\n"
        "Writes a configuration to PATH (default: ~/.sandbox.toml): every key, commented out.\n" +
        options::help_rows(table, kColumn);
    const std::vector<std::string> words(argv + 1, argv + argc);
    auto paths = options::parse(table, kInitGrammar, words);
    if (!paths) {
        std::fprintf(stderr, "init-config: %s\n%s", paths.error().message().c_str(), usage.c_str());
        return 2;
    }
    if (help) {
        std::fputs(usage.c_str(), stdout);
        return 0;
    }
    if (!kind.empty() && example_config(kind).empty()) {
        std::fprintf(stderr, "init-config: --example: '%s' must be native, docker or docker-zh\n",
                     kind.c_str());
        return 2;
    }
    std::string path = paths->empty() ? "" : paths->front();
    if (path.empty()) {
        const char* home = std::getenv("HOME");
        path = std::string(home ? home : "") + "/.sandbox.toml";
    }
    return write_config(path, force, kind);
}

}  // namespace opensandbox::server
