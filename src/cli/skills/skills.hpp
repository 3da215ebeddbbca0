#pragma once

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

}  // namespace opensandbox::cli
