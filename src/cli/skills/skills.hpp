#pragma once

#include "opensandbox/error.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace opensandbox::cli {

/// A text that teaches a coding assistant a part of this command line.
struct Skill {
    std::string_view slug;
    std::string_view title;
    std::string_view area;
    std::string_view summary;
    std::string_view trigger;  ///< when it should be read
    std::string_view body;     ///< Markdown, from its title on

    /// "opensandbox-SLUG", in the marks around it in files that hold others' text, too.
    [[nodiscard]] std::string marker() const { return "opensandbox-" + std::string(slug); }
    /// The text under a heading of the second level, without blank lines around it.
    [[nodiscard]] std::optional<std::string> section(std::string_view heading) const;
    /// With name and description in front, as files of a skill of its own have them.
    [[nodiscard]] std::string document() const;
};

/// All of them, the default one first.
std::span<const Skill> builtin_skills();
const Skill* find_skill(std::string_view slug);

/// A coding assistant and where it looks for texts, below a project's or the user's directory.
struct SkillTarget {
    enum class Layout : unsigned char {
        file,         ///< one file for each skill: name and description in front
        rule_file,    ///< likewise, with the head that rules of Cursor have
        marked_block  ///< one file for all, where other text stands, too
    };

    std::string_view name;
    std::string_view label;
    Layout layout;
    std::string_view directory;  ///< of the skill's file, or the shared file
    std::string_view suffix;     ///< behind the skill's name; empty for the shared file

    [[nodiscard]] std::filesystem::path path(const std::filesystem::path& root,
                                             std::string_view slug) const;
    /// "install one file per skill under .claude/skills/<skill-name>.md".
    [[nodiscard]] std::string layout_text(const std::filesystem::path& root) const;
    /// What stands in the file, or in the block.
    [[nodiscard]] std::string content(const Skill& skill) const;
};

std::span<const SkillTarget> skill_targets();
const SkillTarget* find_skill_target(std::string_view name);

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
