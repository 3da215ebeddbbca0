#pragma once

#include "cli/skills/skill_target.hpp"
#include "opensandbox/error.hpp"

#include <filesystem>
#include <string_view>

namespace opensandbox::cli {

/// A skill at a target below a directory ("" is the working directory): puts it there or takes it
/// away, and leaves alone what else stands in the file.
class SkillInstallation {
  public:
    SkillInstallation(const Skill& skill, const SkillTarget& target, std::filesystem::path root)
        : skill_(skill), target_(target), root_(std::move(root)) {}

    [[nodiscard]] std::filesystem::path path() const { return target_.path(root_, skill_.slug); }
    [[nodiscard]] sdk::Result<bool> is_installed() const;

    /// "installed", "updated" or "already_present".
    [[nodiscard]] sdk::Result<std::string_view> install() const;
    /// "removed" or "not_installed". A file that is empty then goes with it, and the directory of
    /// that file when nothing else is in it.
    [[nodiscard]] sdk::Result<std::string_view> uninstall() const;

  private:
    [[nodiscard]] sdk::Status remove_file() const;

    const Skill& skill_;
    const SkillTarget& target_;
    std::filesystem::path root_;
};

}  // namespace opensandbox::cli
