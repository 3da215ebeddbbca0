#include "runtime/native/records/boot_record.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

std::filesystem::path record_of(const std::filesystem::path& state_directory) {
    return state_directory / "spawner" / "boot";
}

}  // namespace

bool restarted_since(const std::filesystem::path& state_directory) {
    const std::string recorded = read_file_or_empty(record_of(state_directory));
    return !recorded.empty() && recorded != boot_id();
}

Status record_boot(const std::filesystem::path& state_directory) {
    const auto path = record_of(state_directory);
    if (read_file_or_empty(path) == boot_id()) return {};
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd) return last_error("create " + path.string());
    const std::string text = boot_id();
    if (::write(fd.get(), text.data(), text.size()) < 0)
        return last_error("write " + path.string());
    return check(::fsync(fd.get()), "sync " + path.string());
}

}  // namespace opensandbox::runtime::native
