#include "registry/keychain.hpp"

#include "base/log.hpp"
#include "base/program_answer.hpp"
#include "image/staging.hpp"
#include "registry/docker_config.hpp"

#include <algorithm>
#include <cstdlib>

namespace opensandbox::registry {
namespace {

constexpr std::chrono::seconds kProgramPatience{10};

void pass_over(const std::string& what, const Error& error) {
    log::warn("a registry login was not looked up", {{"where", what}, {"error", error.message()}});
}

/// It becomes part of a program's name.
bool is_plain(const std::string& name) {
    return std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
    });
}

}  // namespace

std::filesystem::path Keychain::default_docker_config() {
    const char* directory = std::getenv("DOCKER_CONFIG");
    if (directory && *directory) return std::filesystem::path(directory) / "config.json";
    const char* home = std::getenv("HOME");
    if (!home || !*home) return {};
    return std::filesystem::path(home) / ".docker" / "config.json";
}

Credential Keychain::find(const std::string& registry) const {
    auto own = own_.find(registry);
    if (!own) pass_over(own_.path().string(), own.error());
    if (own && *own) return **own;
    return docker_config_.empty() ? Credential() : find_docker(registry);
}

Credential Keychain::find_docker(const std::string& registry) const {
    auto text = image::read_file(docker_config_);
    if (!text) {
        if (text.error().code() != ErrorCode::not_found) {
            pass_over(docker_config_.string(), text.error());
        }
        return {};
    }
    auto login = find_docker_login(*text, registry);
    if (!login) {
        pass_over(docker_config_.string(), login.error());
        return {};
    }
    if (!login->program.empty() && is_plain(login->program)) {
        ProgramCall get;
        get.program = "docker-credential-" + login->program;
        get.arguments = {"get"};
        get.input = login->server + "\n";
        get.limit = kProgramPatience;
        auto answer = ask_program(get);
        auto credential = answer ? parse_program_answer(*answer) : answer.error();
        if (credential) return *credential;
        // It also fails when it merely does not know the registry.
        log::debug("a credential program gave no login",
                   {{"program", get.program}, {"error", credential.error().message()}});
    }
    return login->credential.value_or(Credential());
}

}  // namespace opensandbox::registry
