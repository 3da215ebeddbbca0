#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::runtime::native {

/// What a system call answers when it fails: a number of errno.
enum class Errno : int {};
template <class T>
using Outcome = boost::system::result<T, Errno>;

/// With what rights a thread uses files.
struct FileCredentials {
    pid_t process = 0;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::vector<gid_t> groups;
    std::uint64_t capabilities = 0;
};

/// From the text of /proc/…/status; `protocol` when something is missing. Pure.
Result<FileCredentials> parse_file_credentials(std::string_view status);

/// Another thread of this sandbox whose system call is done for it: with its rights, seen from its
/// root and directory. This thread must be one of root's with all that a sandbox's root has.
class Caller {
  public:
    static Outcome<Caller> of(pid_t thread);

    [[nodiscard]] pid_t process() const { return credentials_.process; }

    /// While one lives this thread has the caller's rights to files and no others.
    class Rights {
      public:
        explicit Rights(const FileCredentials& wanted);
        ~Rights();
        Rights(const Rights&) = delete;
        Rights& operator=(const Rights&) = delete;
        /// The ids are the caller's, the capabilities still this thread's: to look at the caller.
        [[nodiscard]] bool taken() const { return taken_; }
        /// Leaves the capabilities that the caller has, too.
        [[nodiscard]] bool narrow();

      private:
        const FileCredentials* wanted_;
        bool taken_ = false;
    };
    [[nodiscard]] const FileCredentials& credentials() const { return credentials_; }

    /// A text of its memory that ends with a zero byte; at most `most` bytes.
    [[nodiscard]] Outcome<std::string> read_text(std::uint64_t address, std::size_t most) const;
    /// Exactly `size` bytes of its memory.
    [[nodiscard]] Outcome<std::string> read_bytes(std::uint64_t address, std::size_t size) const;

    /// What its descriptor `number` is open on, as O_PATH.
    [[nodiscard]] Outcome<UniqueFd> file(int number) const;
    /// What `path` names for it, as O_PATH; relative to `directory`, a descriptor of its own or
    /// AT_FDCWD. Links of /proc other than its own descriptors' are not followed (ELOOP).
    [[nodiscard]] Outcome<UniqueFd> resolve(int directory, const std::string& path,
                                            bool follow) const;
    /// Takes what resolve() needs of it, while capabilities are this thread's own.
    [[nodiscard]] Outcome<void> look();

  private:
    std::string directory_;  ///< below /proc
    FileCredentials credentials_;
    UniqueFd root_;
    UniqueFd current_;
    UniqueFd memory_;
    bool in_own_root_ = false;
};

}  // namespace opensandbox::runtime::native
