#include "registry/docker_config.hpp"

#include "base/base64.hpp"
#include "json/document.hpp"
#include "registry/location.hpp"

#include <algorithm>

namespace opensandbox::registry {
namespace {

/// Docker keeps the login of its own registry under this name.
constexpr std::string_view kDockerServer = "https://index.docker.io/v1/";
/// A user of this name says that the secret is a token for the token server.
constexpr std::string_view kTokenUser = "<token>";

Error wrong(std::string_view member, std::string_view rule) {
    return {ErrorCode::invalid_argument, std::string(member) + ": " + std::string(rule)};
}

/// Keys may be "https://host/v1/", too.
bool means(std::string_view key, const std::string& registry) {
    auto location = locate_registry(key);
    return location && location->registry == registry;
}

Result<const json::object*> object_of(const json::object& from, std::string_view name) {
    const json::value* member = json::find(from, name);
    if (!member) return static_cast<const json::object*>(nullptr);
    if (!member->is_object()) return wrong(name, "must be an object");
    return &member->get_object();
}

Result<Credential> read_login(const json::object& login) {
    Credential credential;
    auto encoded = json::get_string(login, "auth");
    auto username = json::get_string(login, "username");
    auto password = json::get_string(login, "password");
    auto token = json::get_string(login, "identitytoken");
    if (!encoded) return encoded.error();
    if (!username) return username.error();
    if (!password) return password.error();
    if (!token) return token.error();
    credential.username = username->value_or("");
    credential.password = password->value_or("");
    credential.identity_token = token->value_or("");
    if (*encoded && !(*encoded)->empty()) {
        auto both = from_base64(**encoded);
        if (!both || both->find(':') == std::string::npos) {
            return wrong("auth", "must be base64 of USER:PASSWORD");
        }
        credential.username = both->substr(0, both->find(':'));
        credential.password = both->substr(both->find(':') + 1);
        // Some writers end it with NULs.
        while (credential.password.ends_with('\0'))
            credential.password.pop_back();
    }
    return credential;
}

}  // namespace

Result<DockerLogin> find_docker_login(std::string_view text, const std::string& registry) {
    auto document = json::parse(text);
    if (!document) return document.error();
    if (!document->is_object()) return wrong("document", "must be an object");
    const json::object& root = document->get_object();
    DockerLogin found;
    found.server = registry == "docker.io" ? std::string(kDockerServer) : registry;
    auto helpers = object_of(root, "credHelpers");
    if (!helpers) return helpers.error();
    if (*helpers) {
        for (const auto& [key, program] : **helpers) {
            if (!program.is_string() || !means(key, registry)) continue;
            found.program = program.get_string();
            found.server = key;
        }
    }
    auto store = json::get_string(root, "credsStore");
    if (!store) return store.error();
    if (found.program.empty()) found.program = store->value_or("");
    auto logins = object_of(root, "auths");
    if (!logins) return logins.error();
    if (!*logins) return found;
    for (const auto& [key, login] : **logins) {
        if (!login.is_object() || !means(key, registry)) continue;
        auto credential = read_login(login.get_object());
        if (!credential) return credential.error().within("auths." + std::string(key));
        if (!credential->is_anonymous()) found.credential = std::move(*credential);
    }
    return found;
}

Result<Credential> parse_program_answer(std::string_view text) {
    auto document = json::parse(text);
    if (!document) return document.error();
    if (!document->is_object()) return wrong("answer", "must be an object");
    auto username = json::get_string(document->get_object(), "Username");
    auto secret = json::get_string(document->get_object(), "Secret");
    if (!username) return username.error();
    if (!secret) return secret.error();
    Credential credential(username->value_or(""), secret->value_or(""));
    if (credential.username == kTokenUser) {
        credential.identity_token = std::move(credential.password);
        credential.username.clear();
        credential.password.clear();
    }
    return credential;
}

}  // namespace opensandbox::registry
