#include "runtime/native/ground/kernel/own_program.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace opensandbox::runtime::native {

namespace {

constexpr const char* kOwnPath = "/proc/self/exe";
constexpr int kFirstKept = 3;
/// As tools show it until the new program names itself.
constexpr const char* kShownName = "opensandbox exec";
/// From linux/memfd.h of 6.3.
constexpr unsigned kExecutableMemory = 0x10;

Result<UniqueFd> make_executable_memory() {
    UniqueFd memory(::memfd_create("opensandbox", MFD_CLOEXEC | kExecutableMemory));
    // Older kernels make no difference.
    if (!memory && errno == EINVAL) memory.reset(::memfd_create("opensandbox", MFD_CLOEXEC));
    if (!memory) return last_error("memory for it");
    return memory;
}

Result<UniqueFd> copy_own_program() {
    const UniqueFd file(::open(kOwnPath, O_RDONLY | O_CLOEXEC));
    if (!file) return last_error("open");
    auto memory = make_executable_memory();
    if (!memory) return memory;
    constexpr std::size_t kPiece = 1 << 24;
    ssize_t sent = 0;
    while ((sent = ::sendfile(memory->get(), file.get(), nullptr, kPiece)) > 0) {
    }
    if (sent < 0) return last_error("copy");
    if (::fchmod(memory->get(), 0111) < 0) return last_error("chmod");
    // What is open for writing is not executed.
    const std::string path = "/proc/self/fd/" + std::to_string(memory->get());
    UniqueFd reopened(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!reopened) return last_error("open the copy");
    return reopened;
}

}  // namespace

Result<UniqueFd> open_own_program() {
    const char* what = "own executable";
    UniqueFd program(::open(kOwnPath, O_PATH | O_CLOEXEC));
    struct stat info{};
    if (!program || ::fstat(program.get(), &info) < 0) return last_error(what);
    if ((info.st_mode & S_IXOTH) != 0) return program;
    auto copy = copy_own_program();
    if (!copy) return copy.error().within(what);
    return copy;
}

Result<int> keep_for_new_program(std::span<const int> kept, int program) {
    const int own = kFirstKept + static_cast<int>(kept.size());
    std::vector<UniqueFd> raised;
    const auto raise = [&](int fd) {
        // Out of the way of where they go.
        raised.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, own + 1));
        return static_cast<bool>(raised.back());
    };
    for (const int fd : kept)
        if (!raise(fd)) return last_error("duplicate a descriptor");
    if (!raise(program)) return last_error("duplicate a descriptor");
    for (int i = 0; const UniqueFd& fd : raised) {
        const int at = kFirstKept + i++;
        if (::dup3(fd.get(), at, at == own ? O_CLOEXEC : 0) < 0) return last_error("dup3");
    }
    raised.clear();
    ::close_range(static_cast<unsigned>(own) + 1, ~0U, 0);
    return own;
}

bool await_message(int socket) {
    char byte = 0;
    ssize_t got;
    do {
        got = ::recv(socket, &byte, 1, MSG_PEEK);
    } while (got < 0 && errno == EINTR);
    return got > 0;
}

Error start_anew(int program, const char* role) {
    std::string name = kShownName;
    std::string word = role;
    char* const arguments[] = {name.data(), word.data(), nullptr};
    char* const environment[] = {nullptr};
    ::syscall(SYS_execveat, program, "", arguments, environment, AT_EMPTY_PATH);
    return last_error("start this executable anew");
}

bool adopt_descriptors(int count) {
    if (::prctl(PR_SET_DUMPABLE, 0) < 0) return false;
    for (int fd = kFirstKept; fd < kFirstKept + count; ++fd)
        if (::fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) return false;
    return true;
}

}  // namespace opensandbox::runtime::native
