#include "cli/skills/skills.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::cli {

namespace {

using Layout = SkillTarget::Layout;

constexpr std::array kTargets{
    SkillTarget{"claude", "Claude Code", Layout::file, ".claude/skills", ".md"},
    SkillTarget{"cursor", "Cursor", Layout::rule_file, ".cursor/rules", ".mdc"},
    SkillTarget{"codex", "Codex", Layout::file, ".codex/skills", "/SKILL.md"},
    SkillTarget{"copilot", "GitHub Copilot", Layout::marked_block,
                ".github/copilot-instructions.md", ""},
    SkillTarget{"windsurf", "Windsurf", Layout::marked_block, ".windsurfrules", ""},
    SkillTarget{"cline", "Cline", Layout::marked_block, ".clinerules", ""},
    SkillTarget{"opencode", "OpenCode", Layout::file, ".agents/skills", "/SKILL.md"},
};

}  // namespace

std::filesystem::path SkillTarget::path(const std::filesystem::path& root,
                                        std::string_view slug) const {
    if (layout == Layout::marked_block) return root / directory;
    return root / directory / (std::string(slug) + std::string(suffix));
}

std::string SkillTarget::layout_text(const std::filesystem::path& root) const {
    return (layout == Layout::marked_block ? "aggregate into one instructions file at "
                                           : "install one file per skill under ") +
           path(root, "<skill-name>").string();
}

std::string SkillTarget::content(const Skill& skill) const {
    switch (layout) {
        case Layout::file: return skill.document();
        case Layout::rule_file:
            return "---\ndescription: \"" + std::string(skill.summary) + " " +
                   std::string(skill.trigger) + "\"\nalwaysApply: false\n---\n\n" +
                   std::string(skill.body);
        case Layout::marked_block: break;
    }
    return std::string(skill.body);
}

std::span<const SkillTarget> skill_targets() {
    return kTargets;
}

const SkillTarget* find_skill_target(std::string_view name) {
    const auto found = std::ranges::find(kTargets, name, &SkillTarget::name);
    return found == kTargets.end() ? nullptr : &*found;
}

}  // namespace opensandbox::cli
