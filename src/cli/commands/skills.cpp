#include "cli/skills/skills.hpp"

#include "cli/invocation.hpp"
#include "sdk/document/describe.hpp"

#include <cstdlib>

namespace opensandbox::cli {

namespace {

struct Scope {
    std::string_view name;
    std::filesystem::path root;
};

std::vector<std::string_view> skill_names() {
    std::vector<std::string_view> names;
    for (const Skill& skill : builtin_skills())
        names.push_back(skill.slug);
    return names;
}

std::vector<std::string_view> target_names() {
    std::vector<std::string_view> names;
    for (const SkillTarget& target : skill_targets())
        names.push_back(target.name);
    names.push_back("all");
    return names;
}

const Skill* named_skill(Arguments& arguments, const std::string& name) {
    const auto slug = arguments.choice("SKILL", name, skill_names());
    return slug ? find_skill(*slug) : nullptr;
}

sdk::Result<std::filesystem::path> home() {
    const char* home = std::getenv("HOME");
    if (home != nullptr && *home == '/') return std::filesystem::path(home);
    return sdk::Error(sdk::ErrorCode::invalid_argument,
                      "HOME is not set to a directory, where --scope global installs");
}

/// What install and uninstall are asked to work on.
struct Places {
    std::vector<const SkillTarget*> targets;
    bool global = false;
};

/// The options --target and --scope; both are needed, and nothing is guessed.
Places places(Arguments& arguments) {
    Places found;
    const auto target = arguments.get("--target");
    const auto scope = arguments.get("--scope");
    if (!target)
        arguments.refuse("--target is needed: " + [] {
            std::string names;
            for (const auto name : target_names())
                names += (names.empty() ? "" : ", ") + std::string(name);
            return names;
        }());
    if (!scope) arguments.refuse("--scope is needed: project or global");
    if (target) {
        const auto name = arguments.choice("--target", *target, target_names());
        for (const SkillTarget& each : skill_targets()) {
            if (name == "all" || name == each.name) found.targets.push_back(&each);
        }
    }
    if (scope) {
        found.global = arguments.choice("--scope", *scope, {"project", "global"}) == "global";
    }
    return found;
}

Awaitable<Outcome> list_skills(Invocation& invocation) {
    auto user = home();
    if (!user) co_return user.error();
    json::array skills;
    for (const Skill& skill : builtin_skills()) {
        const std::string file = skill.marker() + ".md";
        skills.push_back(json::object{{"slug", skill.slug},
                                      {"package_file", file},
                                      {"title", skill.title},
                                      {"summary", skill.summary},
                                      {"trigger_hint", skill.trigger},
                                      {"marker_id", skill.marker()},
                                      {"area", skill.area},
                                      // It stands in this program, in no file.
                                      {"source_path", "builtin:" + file}});
    }
    json::array targets;
    json::array rows;
    for (const SkillTarget& target : skill_targets()) {
        for (const Scope& scope : {Scope{"project", {}}, Scope{"global", *user}}) {
            json::array states;
            for (const Skill& skill : builtin_skills()) {
                const SkillInstallation place(skill, target, scope.root);
                auto installed = place.is_installed();
                const std::string_view status = !installed   ? "unreadable"
                                                : *installed ? "installed"
                                                             : "not installed";
                states.push_back(json::object{
                    {"skill", skill.slug}, {"status", status}, {"path", place.path().string()}});
                rows.push_back(json::object{{"skill", skill.slug},
                                            {"target", target.name},
                                            {"scope", scope.name},
                                            {"status", status},
                                            {"path", place.path().string()}});
            }
            targets.push_back(json::object{{"target", target.name},
                                           {"scope", scope.name},
                                           {"label", target.label},
                                           {"layout", target.layout_text(scope.root)},
                                           {"skills", std::move(states)}});
        }
    }
    const json::value document =
        json::object{{"skills", std::move(skills)}, {"targets", std::move(targets)}};
    if (invocation.format() == Format::table) {
        std::string text;
        for (const Skill& skill : builtin_skills()) {
            text += invocation.terminal().strong(skill.slug) + "\n  " + std::string(skill.summary) +
                    "\n  " + std::string(skill.trigger) + "\n";
        }
        invocation.print_raw(text + "\n");
    }
    co_return invocation.print_list(document, rows,
                                    {{"SKILL", "skill"},
                                     {"TARGET", "target"},
                                     {"SCOPE", "scope"},
                                     {"STATUS", "status"},
                                     {"PATH", "path"}});
}

Awaitable<Outcome> show(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const Skill* skill = named_skill(arguments, arguments.one("SKILL"));
    if (skill == nullptr) co_return *arguments.problem();
    if (invocation.format() == Format::table) {
        co_return invocation.print_raw(std::string(skill->body));
    }
    co_return invocation.print_object({{"skill", skill->slug},
                                       {"title", skill->title},
                                       {"area", skill->area},
                                       {"summary", skill->summary},
                                       {"trigger_hint", skill->trigger},
                                       {"when_to_use", sdk::or_null(skill->section("When To Use"))},
                                       {"quick_start", sdk::or_null(skill->section("Quick Start"))},
                                       {"json_shapes", sdk::or_null(skill->section("JSON Shapes"))},
                                       {"content", skill->document()}});
}

using Work = sdk::Result<std::string_view> (SkillInstallation::*)() const;

/// Installs or uninstalls at every place; stops at the first that fails, and says which.
Outcome work_on(Invocation& invocation, const std::vector<const Skill*>& skills,
                const Places& where, Work work) {
    std::filesystem::path root;
    if (where.global) {
        auto user = home();
        if (!user) return user.error();
        root = *user;
    }
    json::array operations;
    for (const Skill* skill : skills) {
        for (const SkillTarget* target : where.targets) {
            const SkillInstallation place(*skill, *target, root);
            auto status = (place.*work)();
            if (!status) return status.error();
            operations.push_back(json::object{{"skill", skill->slug},
                                              {"target", target->name},
                                              {"target_label", target->label},
                                              {"scope", where.global ? "global" : "project"},
                                              {"path", place.path().string()},
                                              {"status", *status},
                                              {"requires_restart", true}});
        }
    }
    const json::array rows = operations;
    return invocation.print_list(
        json::object{{"operations", std::move(operations)}, {"requires_restart", true}}, rows,
        {{"STATUS", "status"},
         {"SKILL", "skill"},
         {"TARGET", "target"},
         {"SCOPE", "scope"},
         {"PATH", "path"}});
}

Awaitable<Outcome> install(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const auto given = arguments.rest("SKILL");
    const bool all = arguments.has("--all-builtins");
    std::vector<const Skill*> skills;
    if (all == !given.empty()) {
        std::string names;
        for (const auto name : skill_names())
            names += (names.empty() ? "" : ", ") + std::string(name);
        arguments.refuse("SKILL or --all-builtins is needed, not both; there are " + names);
    } else if (all) {
        for (const Skill& skill : builtin_skills())
            skills.push_back(&skill);
    } else {
        skills.push_back(named_skill(arguments, given.front()));
    }
    const Places where = places(arguments);
    if (arguments.problem()) co_return *arguments.problem();
    co_return work_on(invocation, skills, where, &SkillInstallation::install);
}

Awaitable<Outcome> uninstall(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const auto given = arguments.rest("SKILL");
    const Skill* skill =
        given.empty() ? &builtin_skills().front() : named_skill(arguments, given.front());
    const Places where = places(arguments);
    if (arguments.problem()) co_return *arguments.problem();
    co_return work_on(invocation, {skill}, where, &SkillInstallation::uninstall);
}

constexpr std::string_view kTargetWord = "claude|cursor|codex|copilot|windsurf|cline|opencode|all";

}  // namespace

void add_skills_commands(CommandTable& table) {
    table.groups.push_back({"skills", "Teach coding assistants this command line."});
    Command command = make_document_command(
        "skills", "list", "List the skills, and where they are installed.", {}, list_skills);
    command.examples = {{"skills list", "those that there are"}};
    table.commands.push_back(command);

    command = make_document_command("skills", "show", "Print a skill.",
                                    {{"SKILL", "Its name, as 'skills list' shows it."}}, show);
    command.examples = {{"skills show sandbox-lifecycle", "the text that would be installed"}};
    table.commands.push_back(command);

    command = make_document_command("skills", "install", "Install a skill for a coding assistant.",
                                    {{"SKILL", "Its name.", Positional::Count::optional}}, install);
    command.details =
        "claude, cursor, codex and opencode get a file for each skill; in the instructions of\n"
        "copilot, windsurf and cline it is a marked block, and all else there stays. A skill that\n"
        "is there is brought up to date.";
    command.options = {
        {"--all-builtins", 0, "", "All skills."},
        {"--target", 't', kTargetWord, "For which assistant; must be given."},
        {"--scope", 0, "project|global",
         "The working directory, or the user's home; must be given."},
        {"--force", 'f', "", "For scripts of other versions; nothing asks back anyway."}};
    command.examples = {
        {"skills install sandbox-lifecycle -t claude --scope project", "one for this project"},
        {"skills install --all-builtins -t all --scope global", "all, for all projects"}};
    table.commands.push_back(command);

    command = make_document_command(
        "skills", "uninstall", "Remove a skill that was installed.",
        {{"SKILL", "Its name (default sandbox-troubleshooting).", Positional::Count::optional}},
        uninstall);
    command.options = {{"--target", 't', kTargetWord, "For which assistant; must be given."},
                       {"--scope", 0, "project|global",
                        "The working directory, or the user's home; must be given."}};
    command.examples = {
        {"skills uninstall sandbox-lifecycle -t claude --scope project", "one of this project"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
