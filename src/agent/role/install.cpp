#include "agent/role/install.hpp"

#include <array>
#include <cstdio>
#include <filesystem>

namespace opensandbox::agent {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "opensandbox";
constexpr std::array kNames{"execd", "bootstrap.sh", "task-executor"};

/// Written aside and put into place whole: who finds the name finds all of the program.
std::error_code install(const fs::path& directory) {
    std::error_code failed;
    fs::create_directories(directory, failed);
    if (failed) return failed;
    const fs::path aside = directory / (std::string(kProgram) + ".new");
    fs::copy_file("/proc/self/exe", aside, fs::copy_options::overwrite_existing, failed);
    if (failed) return failed;
    constexpr auto kEverybody = fs::perms::owner_all | fs::perms::group_read |
                                fs::perms::group_exec | fs::perms::others_read |
                                fs::perms::others_exec;
    fs::permissions(aside, kEverybody, failed);
    if (failed) return failed;
    fs::rename(aside, directory / kProgram, failed);
    for (const char* name : kNames) {
        if (failed) return failed;
        const fs::path link = directory / (std::string(name) + ".new");
        fs::remove(link, failed);
        fs::create_symlink(kProgram, link, failed);
        if (!failed) fs::rename(link, directory / name, failed);
    }
    return failed;
}

}  // namespace

int install_main(int argc, char** argv) {
    if (argc != 2 || argv[1][0] == '-') {
        std::fputs(
            "usage: opensandbox install-agent DIRECTORY\n"
            "Puts this program there as `execd` and `bootstrap.sh`.\n",
            argc == 2 ? stdout : stderr);
        return argc == 2 ? 0 : 2;
    }
    const std::error_code failed = install(argv[1]);
    if (!failed) return 0;
    std::fprintf(stderr, "install-agent: %s: %s\n", argv[1], failed.message().c_str());
    return 1;
}

}  // namespace opensandbox::agent
