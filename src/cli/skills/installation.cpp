#include "base/error.hpp"
#include "base/identifier.hpp"
#include "base/scope_exit.hpp"
#include "base/unique_fd.hpp"
#include "cli/skills/marked_block.hpp"
#include "cli/skills/skills.hpp"
#include "sdk/stdio/write_fully.hpp"
#include "sdk/transport.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <sstream>
#include <unistd.h>

namespace opensandbox::cli {

namespace {

namespace fs = std::filesystem;

sdk::Error errno_error(const std::string& what) {
    return sdk::to_public(opensandbox::Error::from_errno(errno, what));
}

sdk::Error within(const fs::path& path, const sdk::Error& error) {
    return {error.code(), path.string() + ": " + error.message()};
}

/// Empty: there is no such file.
sdk::Result<std::optional<std::string>> read_text(const fs::path& path) {
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) {
        if (errno == ENOENT) return std::optional<std::string>();
        return errno_error("look at " + path.string());
    }
    if (!S_ISREG(found.st_mode)) {
        return sdk::Error(sdk::ErrorCode::conflict,
                          path.string() + ": is not a regular file; move it out of the way first");
    }
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
    if (!in.is_open() || in.bad()) {
        return sdk::Error(sdk::ErrorCode::io, path.string() + ": cannot be read");
    }
    return std::optional<std::string>(text.str());
}

/// Whole or not at all, through a link, with the mode that the file has.
sdk::Status write_text(const fs::path& named, std::string_view text) {
    std::error_code failed;
    if (named.has_parent_path()) fs::create_directories(named.parent_path(), failed);
    if (failed) {
        return sdk::Error(sdk::ErrorCode::io,
                          "make " + named.parent_path().string() + ": " + failed.message());
    }
    const fs::path real = fs::canonical(named, failed);
    const fs::path path = failed ? named : real;
    const std::string temporary = path.string() + ".part-" + new_hex_id();
    UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd) return errno_error("create a file beside " + path.string());
    ScopeExit abandoned([&] { ::unlink(temporary.c_str()); });
    struct stat before{};
    if (::stat(path.c_str(), &before) == 0 && ::fchmod(fd.get(), before.st_mode & 07777) != 0) {
        return errno_error("set the mode of " + temporary);
    }
    if (!sdk::write_fully(fd.get(), text)) return errno_error("write " + temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        return errno_error("rename to " + path.string());
    }
    abandoned.dismiss();
    return {};
}

}  // namespace

sdk::Result<bool> SkillInstallation::is_installed() const {
    auto text = read_text(path());
    if (!text) return text.error();
    if (!*text) return false;
    if (target_.layout != SkillTarget::Layout::marked_block) return true;
    auto found = has_block(**text, skill_.marker());
    if (!found) return within(path(), found.error());
    return *found;
}

sdk::Result<std::string_view> SkillInstallation::install() const {
    auto before = read_text(path());
    if (!before) return before.error();
    std::string wanted = target_.content(skill_);
    bool present = before->has_value();
    if (target_.layout == SkillTarget::Layout::marked_block) {
        const std::string text = before->value_or("");
        auto found = has_block(text, skill_.marker());
        if (!found) return within(path(), found.error());
        auto with = with_block(text, skill_.marker(), wanted);
        if (!with) return within(path(), with.error());
        present = *found;
        wanted = *with;
    }
    if (*before == wanted) return std::string_view("already_present");
    auto written = write_text(path(), wanted);
    if (!written) return written.error();
    return std::string_view(present ? "updated" : "installed");
}

sdk::Result<std::string_view> SkillInstallation::uninstall() const {
    auto before = read_text(path());
    if (!before) return before.error();
    if (!*before) return std::string_view("not_installed");
    if (target_.layout == SkillTarget::Layout::marked_block) {
        auto rest = without_block(**before, skill_.marker());
        if (!rest) return within(path(), rest.error());
        if (!*rest) return std::string_view("not_installed");
        if ((*rest)->find_first_not_of(" \t\r\n") != std::string::npos) {
            auto written = write_text(path(), **rest);
            if (!written) return written.error();
            return std::string_view("removed");
        }
    }
    auto removed = remove_file();
    if (!removed) return removed.error();
    return std::string_view("removed");
}

sdk::Status SkillInstallation::remove_file() const {
    const fs::path file = path();
    if (::unlink(file.c_str()) != 0) return errno_error("remove " + file.string());
    // Files of one block each stand in directories of others, `.github` for example: those stay,
    // as do the project's and the user's own.
    const bool own_directory = target_.layout != SkillTarget::Layout::marked_block;
    if (own_directory && file.parent_path() != root_) ::rmdir(file.parent_path().c_str());
    return {};
}

}  // namespace opensandbox::cli
