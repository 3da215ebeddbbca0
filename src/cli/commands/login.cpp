#include "base/state_directory.hpp"
#include "cli/invocation.hpp"
#include "cli/secret_input.hpp"
#include "registry/credential_file.hpp"
#include "registry/location.hpp"
#include "registry/registries.hpp"
#include "sdk/transport.hpp"

namespace opensandbox::cli {

namespace {

const Option kStateDirectory{"--state-dir", 0, "PATH",
                             "State directory of the server that is to use it (default: that\n"
                             "of this user's server)."};

registry::CredentialFile credential_file(Arguments& arguments) {
    auto given = arguments.get("--state-dir");
    return registry::CredentialFile::in(given ? std::filesystem::path(*given)
                                              : default_state_directory());
}

/// The registry in the form in which its login is kept.
sdk::Result<registry::Location> location_of(Arguments& arguments) {
    auto location = registry::locate_registry(arguments.one("REGISTRY"));
    if (!location) return sdk::to_public(location.error());
    return *location;
}

sdk::Result<model::RegistryLogin> read_login(Arguments& arguments) {
    auto user = arguments.get("--username");
    if (!user && arguments.has("--password-stdin")) {
        arguments.refuse("--password-stdin: needs --username");
        return model::RegistryLogin();
    }
    auto name = user ? sdk::Result<std::string>(*user) : ask("User: ", false);
    if (!name) return name.error();
    auto password = arguments.has("--password-stdin") ? read_secret() : ask("Password: ", true);
    if (!password) return password.error();
    if (name->empty() || password->empty()) {
        arguments.refuse("user and password must not be empty");
    }
    return model::RegistryLogin(std::move(*name), std::move(*password));
}

Awaitable<Outcome> login(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    auto location = location_of(arguments);
    if (!location) co_return location.error();
    auto given = read_login(arguments);
    if (!given) co_return given.error();
    if (arguments.problem()) co_return *arguments.problem();
    if (!arguments.has("--no-check")) {
        registry::RegistryOptions options;
        if (auto file = arguments.get("--ca-file")) options.ca_file = *file;
        if (arguments.has("--plain-http")) options.plain_http_hosts = {location->registry};
        auto checked = co_await registry::check_login(options, location->registry, *given);
        if (!checked) co_return sdk::to_public(checked.error());
    }
    registry::CredentialFile file = credential_file(arguments);
    auto kept =
        file.put(location->registry, registry::Credential(given->username, given->password));
    if (!kept) co_return sdk::to_public(kept.error());
    co_return invocation.print_done("Logged in to " + location->registry + ", kept in " +
                                    file.path().string());
}

Awaitable<Outcome> logout(Invocation& invocation) {
    auto location = location_of(invocation.arguments());
    if (!location) co_return location.error();
    auto removed = credential_file(invocation.arguments()).remove(location->registry);
    if (!removed) co_return sdk::to_public(removed.error());
    co_return invocation.print_done(*removed ? "Logged out of " + location->registry
                                             : "There was no login to " + location->registry);
}

}  // namespace

void add_login_commands(CommandTable& table) {
    const Positional registry{"REGISTRY", "HOST or HOST:PORT; docker.io."};
    Command command =
        make_document_command("", "login", "Keep a login for a registry.", {registry}, login);
    command.options = {
        {"--username", 'u', "USER", "User (default: asked for)."},
        {"--password-stdin", 0, "", "Read the password from standard input (default: asked for)."},
        {"--ca-file", 0, "PATH", "Authorities to check the registry with (PEM)."},
        {"--plain-http", 0, "", "The registry has no TLS."},
        {"--no-check", 0, "", "Do not ask the registry whether the login is right."},
        kStateDirectory};
    command.details =
        "Kept in a file of this machine that only its owner can read, in the state directory,\n"
        "where the server finds it when it pulls and pushes. Wins over ~/.docker/config.json.";
    command.examples = {{"login registry.example -u me --password-stdin < secret", "in a script"}};
    table.commands.push_back(std::move(command));

    command =
        make_document_command("", "logout", "Forget the login for a registry.", {registry}, logout);
    command.examples = {{"logout registry.example", "what 'login' kept"}};
    command.options = {kStateDirectory};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
