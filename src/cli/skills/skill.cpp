#include "cli/skills/skills.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::cli {

namespace {

// Made at build time from the files of the same names beside this one.
constexpr char kTroubleshooting[] = {
#include "cli/skills/sandbox-troubleshooting.md.inc"
};
constexpr char kLifecycle[] = {
#include "cli/skills/sandbox-lifecycle.md.inc"
};
constexpr char kExecution[] = {
#include "cli/skills/command-execution.md.inc"
};
constexpr char kFiles[] = {
#include "cli/skills/file-operations.md.inc"
};
constexpr char kEgress[] = {
#include "cli/skills/network-egress.md.inc"
};
constexpr char kVault[] = {
#include "cli/skills/credential-vault.md.inc"
};

template <std::size_t size>
constexpr std::string_view text_of(const char (&bytes)[size]) {
    return {bytes, size};
}

constexpr std::array kSkills{
    Skill{"sandbox-troubleshooting", "OpenSandbox Sandbox Troubleshooting", "Troubleshooting",
          "Find out why a sandbox does not start, does not answer or ended, from its state, its "
          "health, its events and its logs.",
          "Read this when a sandbox is Pending, Failed or gone, an image cannot be pulled, memory "
          "ran out, or a service in a sandbox cannot be reached.",
          text_of(kTroubleshooting)},
    Skill{"sandbox-lifecycle", "OpenSandbox Sandbox Lifecycle", "Lifecycle",
          "Create, look at, renew, pause, resume, fork and delete sandboxes, and work with "
          "snapshots and templates.",
          "Read this to make a sandbox for a task, keep or copy its state, expose a port of it, or "
          "clean up.",
          text_of(kLifecycle)},
    Skill{"command-execution", "OpenSandbox Command Execution", "Execution",
          "Run commands in a sandbox in the foreground, in the background or in a shell session, "
          "and read what they print.",
          "Read this to run anything in a sandbox, to follow or stop it, or to keep a working "
          "directory and variables between commands.",
          text_of(kExecution)},
    Skill{"file-operations", "OpenSandbox File Operations", "Files",
          "Read, write, copy, search and change files of a sandbox.",
          "Read this to move files into or out of a sandbox or to edit them there.",
          text_of(kFiles)},
    Skill{"network-egress", "OpenSandbox Network Egress", "Network",
          "Decide what a sandbox may reach, when it is created and while it runs.",
          "Read this to allow or deny outgoing connections, or when a name does not resolve or a "
          "download fails in a sandbox.",
          text_of(kEgress)},
    Skill{"credential-vault", "OpenSandbox Credential Vault", "General",
          "Let requests that leave a sandbox carry credentials that the sandbox never sees.",
          "Read this when a program in a sandbox must call an API that asks for a token, key or "
          "password.",
          text_of(kVault)},
};

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of('\n');
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of('\n') - first + 1);
}

}  // namespace

std::optional<std::string> Skill::section(std::string_view heading) const {
    const std::string line = "\n## " + std::string(heading) + "\n";
    const auto found = body.find(line);
    if (found == std::string_view::npos) return std::nullopt;
    const std::string_view rest = body.substr(found + line.size());
    return std::string(trimmed(rest.substr(0, rest.find("\n## "))));
}

std::string Skill::document() const {
    return "---\nname: " + std::string(slug) + "\ndescription: \"" + std::string(summary) + " " +
           std::string(trigger) + "\"\n---\n\n" + std::string(body);
}

std::span<const Skill> builtin_skills() {
    return kSkills;
}

const Skill* find_skill(std::string_view slug) {
    const auto found = std::ranges::find(kSkills, slug, &Skill::slug);
    return found == kSkills.end() ? nullptr : &*found;
}

}  // namespace opensandbox::cli
