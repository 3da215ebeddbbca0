#include "cli/skills/skills.hpp"

#include "cli/skills/marked_block.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace opensandbox;
using namespace opensandbox::cli;

namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

void write(const fs::path& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
}

SkillInstallation place(std::string_view skill, std::string_view target, const fs::path& root) {
    REQUIRE(find_skill(skill));
    REQUIRE(find_skill_target(target));
    return {*find_skill(skill), *find_skill_target(target), root};
}

}  // namespace

TEST_CASE("A marked block is put at the end, replaced in place and taken out again") {
    const std::string others = "first\nno line end";
    auto once = with_block(others, "a", "one");
    REQUIRE(once);
    CHECK(*once == "first\nno line end\n\n<!-- BEGIN a -->\none\n<!-- END a -->\n");
    auto with_other = with_block(*once + "behind\n", "b", "two\n");
    REQUIRE(with_other);
    auto replaced = with_block(*with_other, "a", "new");
    REQUIRE(replaced);
    CHECK(*replaced ==
          "first\nno line end\n\n<!-- BEGIN a -->\nnew\n<!-- END a -->\nbehind\n\n"
          "<!-- BEGIN b -->\ntwo\n<!-- END b -->\n");
    auto rest = without_block(*replaced, "b");
    REQUIRE((rest && *rest));
    rest = without_block(**rest, "a");
    REQUIRE((rest && *rest));
    CHECK(**rest == "first\nno line end\n\nbehind\n");
    CHECK(*has_block(**rest, "a") == false);
    rest = without_block(**rest, "a");
    REQUIRE(rest);
    CHECK_FALSE(*rest);
}

TEST_CASE("Marks count only as whole lines, and only in pairs") {
    CHECK(*has_block("see <!-- BEGIN a -->\n<!-- BEGIN ab -->\n<!-- END ab -->\n", "a") == false);
    CHECK(*has_block("<!-- BEGIN a -->\r\nx\r\n<!-- END a -->\r\n", "a"));
    CHECK(*has_block("<!-- BEGIN a -->\n<!-- END a -->", "a"));
    for (std::string_view broken :
         {"<!-- BEGIN a -->\nx\n", "<!-- END a -->\n", "<!-- END a -->\n<!-- BEGIN a -->\n",
          "<!-- BEGIN a -->\n<!-- END a -->\nx\n<!-- END a -->\n",
          "<!-- BEGIN a -->\nx\n<!-- BEGIN a -->\n<!-- END a -->\n"}) {
        INFO(broken);
        auto found = with_block(broken, "a", "x");
        REQUIRE_FALSE(found);
        CHECK(found.error().message().find("<!-- ") != std::string::npos);
        CHECK_FALSE(without_block(broken, "a"));
    }
}

TEST_CASE("Every skill has a text of its own that a description goes before") {
    CHECK(builtin_skills().size() == 6);
    CHECK(builtin_skills().front().slug == "sandbox-troubleshooting");
    for (const Skill& skill : builtin_skills()) {
        INFO(skill.slug);
        CHECK(skill.body.starts_with("# " + std::string(skill.title) + "\n"));
        CHECK(skill.body.ends_with("\n"));
        CHECK(skill.document().starts_with("---\nname: " + std::string(skill.slug) + "\n"));
        REQUIRE(skill.section("Quick Start"));
        CHECK(skill.section("Quick Start")->find("\n## ") == std::string::npos);
        CHECK(skill.section("When To Use")->starts_with("- "));
        CHECK_FALSE(skill.section("Quick"));
        // The description is a quoted scalar.
        CHECK(skill.summary.find_first_of("\"\\") == std::string_view::npos);
        CHECK(skill.trigger.find_first_of("\"\\") == std::string_view::npos);
    }
}

TEST_CASE("Installing twice changes nothing, and what was changed is brought up to date") {
    const test_support::ScratchDirectory scratch;
    for (const SkillTarget& target : skill_targets()) {
        INFO(target.name);
        const auto skill = place("file-operations", target.name, scratch.path);
        CHECK(*skill.uninstall() == "not_installed");
        CHECK(*skill.is_installed() == false);
        CHECK(*skill.install() == "installed");
        CHECK(*skill.is_installed());
        const std::string whole = text_of(skill.path());
        CHECK(*skill.install() == "already_present");
        std::string changed = whole;
        changed.replace(changed.find("Quick Start"), 5, "Other");
        write(skill.path(), changed);
        CHECK(*skill.install() == "updated");
        CHECK(text_of(skill.path()) == whole);
        CHECK(*skill.uninstall() == "removed");
        CHECK_FALSE(fs::exists(skill.path()));
        CHECK(*skill.uninstall() == "not_installed");
    }
    CHECK_FALSE(fs::exists(scratch.path / ".codex/skills/file-operations"));
    CHECK(fs::exists(scratch.path / ".codex/skills"));
}

TEST_CASE("Text of others stays, and so do mode and link of the file that it is in") {
    const test_support::ScratchDirectory scratch;
    const fs::path rules = scratch.path / ".windsurfrules";
    const fs::path real = scratch.path / "rules.md";
    write(real, "Indent by two.\n");
    fs::permissions(real, fs::perms::owner_read | fs::perms::owner_write);
    fs::create_symlink("rules.md", rules);
    const auto first = place("network-egress", "windsurf", scratch.path);
    const auto second = place("credential-vault", "windsurf", scratch.path);
    CHECK(*first.install() == "installed");
    CHECK(*second.install() == "installed");
    CHECK(
        text_of(rules).starts_with("Indent by two.\n\n<!-- BEGIN opensandbox-network-egress -->"));
    CHECK(*first.uninstall() == "removed");
    CHECK(*second.is_installed());
    CHECK(*second.uninstall() == "removed");
    CHECK(text_of(real) == "Indent by two.\n");
    CHECK(fs::is_symlink(rules));
    CHECK(fs::status(real).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("A file that cannot be understood is left alone and named") {
    const test_support::ScratchDirectory scratch;
    const auto cline = place("network-egress", "cline", scratch.path);
    fs::create_directory(cline.path());
    auto refused = cline.install();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message().find(cline.path().string()) != std::string::npos);
    const auto windsurf = place("network-egress", "windsurf", scratch.path);
    const std::string torn = "mine\n<!-- BEGIN opensandbox-network-egress -->\nand more of mine\n";
    write(windsurf.path(), torn);
    refused = windsurf.install();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message().find(windsurf.path().string()) != std::string::npos);
    CHECK_FALSE(windsurf.uninstall());
    CHECK(text_of(windsurf.path()) == torn);
}
