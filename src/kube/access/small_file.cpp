#include "kube/access/small_file.hpp"

#include "base/unique_fd.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::kube {
namespace {

constexpr std::size_t kMaxSize = std::size_t{1024} * 1024;
constexpr const char* kWhiteSpace = " \t\r\n";

}  // namespace

Result<std::string> read_small_file(const std::filesystem::path& path) {
    // One that is no file, such as a pipe, must not be waited for.
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return Error::from_errno(errno, path.string());
    std::string text;
    std::array<char, 16 * 1024> buffer{};
    while (true) {
        const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Error::from_errno(errno, path.string());
        if (got == 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(got));
        if (text.size() > kMaxSize)
            return Error(ErrorCode::too_large, path.string() + ": is larger than 1 MiB");
    }
}

Result<std::string> read_small_word(const std::filesystem::path& path) {
    auto text = read_small_file(path);
    if (!text) return text;
    const std::size_t first = text->find_first_not_of(kWhiteSpace);
    if (first == std::string::npos) return std::string();
    return text->substr(first, text->find_last_not_of(kWhiteSpace) - first + 1);
}

}  // namespace opensandbox::kube
