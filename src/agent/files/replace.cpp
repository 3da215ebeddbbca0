#include "agent/files/operations.hpp"
#include "agent/files/replacement_file.hpp"
#include "base/unique_fd.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kReplacedPiece = std::size_t{1} << 20;

/// The position of `what`; npos when it is not there. Linear, unlike std::string::find.
std::size_t find_in(std::string_view text, std::string_view what) {
    const void* at = ::memmem(text.data(), text.size(), what.data(), what.size());
    if (at == nullptr) return std::string_view::npos;
    return static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

/// Reads a file and passes on its text with the replacements made.
class Replacer {
  public:
    Replacer(int in, const std::string& path, const std::string& from, const std::string& to,
             const std::stop_token& stop)
        : in_(in), path_(path), from_(from), to_(to), stop_(stop) {}

    /// With `out` null only counts.
    Result<std::uint64_t> run(ReplacementFile* out) {
        while (!ended_ || !window_.empty()) {
            if (stop_.stop_requested()) {
                return Error(ErrorCode::cancelled, path_ + ": replacing was broken off");
            }
            if (Status filled = fill(); !filled) return filled.error();
            if (Status passed = pass(out); !passed) return passed.error();
        }
        return count_;
    }

  private:
    Status fill() {
        while (!ended_ && window_.size() < kReplacedPiece + from_.size()) {
            std::size_t have = window_.size();
            window_.resize(have + kReplacedPiece);
            ssize_t got = ::pread(in_, window_.data() + have, kReplacedPiece, offset_);
            window_.resize(have + (got > 0 ? static_cast<std::size_t>(got) : 0));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return Error::from_errno(errno, "read " + path_);
            offset_ += got;
            ended_ = got == 0;
        }
        return {};
    }

    /// Passes on what cannot be part of a later match.
    Status pass(ReplacementFile* out) {
        std::string_view rest = window_;
        std::string passed;
        for (std::size_t at = 0; (at = find_in(rest, from_)) != std::string_view::npos;) {
            ++count_;
            if (out) passed.append(rest.substr(0, at)).append(to_);
            rest.remove_prefix(at + from_.size());
        }
        std::size_t keep = ended_ ? 0 : std::min(rest.size(), from_.size() - 1);
        if (out) passed.append(rest.substr(0, rest.size() - keep));
        window_.erase(0, window_.size() - keep);
        return out ? out->write(passed) : Status();
    }

    int in_;
    const std::string& path_;
    const std::string& from_;
    const std::string& to_;
    const std::stop_token& stop_;
    std::string window_;
    off_t offset_ = 0;
    bool ended_ = false;
    std::uint64_t count_ = 0;
};

}  // namespace

Result<std::uint64_t> replace_in_file(const std::string& path, const std::string& old_text,
                                      const std::string& new_text, const std::stop_token& stop) {
    UniqueFd in(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!in) return Error::from_errno(errno, path);
    struct stat info{};
    if (::fstat(in.get(), &info) != 0) return Error::from_errno(errno, path);
    if (!S_ISREG(info.st_mode)) {
        return Error(ErrorCode::invalid_argument, path + " is not a regular file");
    }
    Result<std::uint64_t> found = Replacer(in.get(), path, old_text, new_text, stop).run(nullptr);
    if (!found || *found == 0) return found;
    Result<ReplacementFile> out = ReplacementFile::open(path, false);
    if (!out) return out.error();
    Result<std::uint64_t> done = Replacer(in.get(), path, old_text, new_text, stop).run(&*out);
    if (!done) return done;
    Status committed = out->commit(Permission());
    if (!committed) return committed.error();
    return done;
}

}  // namespace opensandbox::agent
