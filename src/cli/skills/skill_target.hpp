#pragma once

#include "cli/skills/skill.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace opensandbox::cli {

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

}  // namespace opensandbox::cli
