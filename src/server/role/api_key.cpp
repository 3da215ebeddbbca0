#include "base/identifier.hpp"
#include "base/state_directory.hpp"
#include "base/unique_fd.hpp"
#include "server/role/startup.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::server {
namespace {

Result<std::string> read_key(int fd, const std::string& path) {
    char text[257];
    ssize_t size = ::read(fd, text, sizeof text);
    if (size < 0) return Error::from_errno(errno, "read " + path);
    std::string key(text, static_cast<std::size_t>(size));
    while (!key.empty() && (key.back() == '\n' || key.back() == '\r' || key.back() == ' '))
        key.pop_back();
    if (key.empty() || key.size() > 256) {
        return Error(
            ErrorCode::invalid_argument,
            path + ": must hold one API key of 1 to 256 characters; remove it to get a new one");
    }
    return key;
}

/// Written aside and linked into place, so that a crash never leaves half a key.
Result<std::string> make_key(const std::filesystem::path& path) {
    std::string key = new_token();
    std::string aside = path.string() + ".new";
    ::unlink(aside.c_str());
    UniqueFd file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return Error::from_errno(errno, "create " + aside);
    std::string line = key + "\n";
    if (::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        return Error::from_errno(errno, "write " + aside);
    }
    if (::rename(aside.c_str(), path.c_str()) != 0)
        return Error::from_errno(errno, "rename " + aside);
    return key;
}

}  // namespace

Result<std::string> resolve_api_key(const Config& config, const std::filesystem::path& state_dir) {
    if (const char* given = std::getenv("OPENSANDBOX_SERVER_API_KEY")) return std::string(given);
    if (config.tenants.enabled) return std::string();
    if (config.api_key) return *config.api_key;
    std::filesystem::path path = api_key_file(state_dir);
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file && errno == ENOENT) return make_key(path);
    if (!file) return Error::from_errno(errno, "open " + path.string());
    if (::fchmod(file.get(), 0600) != 0)
        return Error::from_errno(errno, "protect " + path.string());
    return read_key(file.get(), path.string());
}

}  // namespace opensandbox::server
