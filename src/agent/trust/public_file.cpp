#include "agent/trust/public_file.hpp"

#include "agent/files/replacement_file.hpp"
#include "base/unique_fd.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxSize = std::size_t{16} << 20;

}  // namespace

std::optional<std::string> read_file(const std::string& path) {
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info{};
    if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
    std::string text;
    std::array<char, 64 * 1024> piece;
    while (text.size() < kMaxSize) {
        ssize_t got = ::read(file.get(), piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return std::nullopt;
        if (got == 0) return text;
        text.append(piece.data(), static_cast<std::size_t>(got));
    }
    return std::nullopt;
}

bool write_public(const std::string& path, const std::string& text) {
    auto file = ReplacementFile::open(path, true);
    return file && file->write(text) && file->commit(Permission()) &&
           ::chmod(path.c_str(), 0644) == 0;
}

}  // namespace opensandbox::agent
