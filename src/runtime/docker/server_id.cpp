#include "base/identifier.hpp"
#include "base/unique_fd.hpp"
#include "runtime/docker/names.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

namespace opensandbox::runtime::docker {

Result<std::string> server_id(const std::filesystem::path& state_directory) {
    std::filesystem::path file = state_directory / "server-id";
    std::string id;
    std::ifstream(file) >> id;
    if (is_uuid(id)) return id;
    // Written aside and renamed, so that a file cut short is never read.
    id = new_uuid();
    std::string aside = file.string() + ".new";
    UniqueFd out(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    std::string line = id + "\n";
    if (!out || ::write(out.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
        ::fsync(out.get()) != 0 || ::rename(aside.c_str(), file.c_str()) != 0) {
        return Error::from_errno(errno, "write " + file.string());
    }
    return id;
}

}  // namespace opensandbox::runtime::docker
