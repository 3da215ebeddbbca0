#include "cli/input_document.hpp"
#include "cli/invocation.hpp"
#include "sdk/document/describe.hpp"

namespace opensandbox::cli {

namespace {

constexpr std::string_view kVaultGroup = "credential-vault";

sdk::Result<sdk::CredentialVault> vault_of(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) return connection.error();
    return sdk::CredentialVault(*connection, invocation.arguments().one("SANDBOX_ID"));
}

Outcome print_vault(Invocation& invocation, const sdk::VaultState& state) {
    return invocation.print_object(describe(state));
}

/// Names the member of the payload that is not what it must be; empty when all are.
std::string problem_of(const json::object& payload, std::initializer_list<std::string_view> names,
                       bool arrays) {
    for (auto name : names) {
        const json::value* member = json::find(payload, name);
        if (!member && !arrays) continue;
        if (member && (arrays ? member->is_array() : member->is_object())) continue;
        return std::string(name) + ": must be " + (arrays ? "a list" : "an object");
    }
    return {};
}

sdk::Error bad_payload(const std::string& why) {
    return {sdk::ErrorCode::invalid_argument, "--file: " + why};
}

Awaitable<Outcome> create_vault(Invocation& invocation) {
    auto payload = co_await read_input_object(invocation, "--file");
    if (!payload) co_return payload.error();
    auto problem = problem_of(*payload, {"credentials", "bindings"}, /*arrays=*/true);
    if (!problem.empty()) co_return bad_payload(problem);
    auto vault = vault_of(invocation);
    if (!vault) co_return vault.error();
    auto state = co_await vault->create(json::serialize(*payload));
    if (!state) co_return state.error();
    co_return print_vault(invocation, *state);
}

/// Takes the other spelling of the revision, too.
std::string read_revision(json::object& payload) {
    if (json::value* other = payload.if_contains("expected_revision")) {
        if (!payload.contains("expectedRevision")) payload["expectedRevision"] = *other;
        payload.erase("expected_revision");
    }
    const json::value* revision = json::find(payload, "expectedRevision");
    if (!revision || revision->is_int64() || revision->is_uint64()) return {};
    return "expectedRevision: must be a whole number";
}

Awaitable<Outcome> patch(Invocation& invocation) {
    auto payload = co_await read_input_object(invocation, "--file");
    if (!payload) co_return payload.error();
    auto problem = problem_of(*payload, {"credentials", "bindings"}, /*arrays=*/false);
    if (problem.empty()) problem = read_revision(*payload);
    if (problem.empty() && !json::find(*payload, "credentials") &&
        !json::find(*payload, "bindings")) {
        problem = "must have credentials or bindings";
    }
    if (!problem.empty()) co_return bad_payload(problem);
    auto vault = vault_of(invocation);
    if (!vault) co_return vault.error();
    auto state = co_await vault->patch(json::serialize(*payload));
    if (!state) co_return state.error();
    co_return print_vault(invocation, *state);
}

Awaitable<Outcome> get_vault(Invocation& invocation) {
    auto vault = vault_of(invocation);
    if (!vault) co_return vault.error();
    auto state = co_await vault->get();
    if (!state) co_return state.error();
    co_return print_vault(invocation, *state);
}

Awaitable<Outcome> remove_vault(Invocation& invocation) {
    auto vault = vault_of(invocation);
    if (!vault) co_return vault.error();
    auto removed = co_await vault->remove();
    if (!removed) co_return removed.error();
    json::object document;
    document["sandbox_id"] = invocation.arguments().one("SANDBOX_ID");
    document["status"] = "deleted";
    co_return invocation.print_object(document);
}

Awaitable<Outcome> list_credentials(Invocation& invocation) {
    auto vault = vault_of(invocation);
    if (!vault) co_return vault.error();
    auto credentials = co_await vault->credentials();
    if (!credentials) co_return credentials.error();
    const json::array rows = describe(*credentials);
    co_return invocation.print_list(
        rows, rows, {{"NAME", "name"}, {"SOURCE_TYPE", "source_type"}, {"REVISION", "revision"}});
}

Awaitable<Outcome> get_credential(Invocation& invocation) {
    auto vault = vault_of(invocation);
    if (!vault) co_return vault.error();
    auto credential = co_await vault->credential(invocation.arguments().one("NAME"));
    if (!credential) co_return credential.error();
    co_return invocation.print_object(describe(*credential));
}

Awaitable<Outcome> list_bindings(Invocation& invocation) {
    auto vault = vault_of(invocation);
    if (!vault) co_return vault.error();
    auto bindings = co_await vault->bindings();
    if (!bindings) co_return bindings.error();
    const json::array rows = describe(*bindings);
    co_return invocation.print_list(rows, rows,
                                    {{"NAME", "name"},
                                     {"REVISION", "revision"},
                                     {"HOSTS", "match.hosts"},
                                     {"PATHS", "match.paths"},
                                     {"AUTH", "auth.type"}});
}

Awaitable<Outcome> get_binding(Invocation& invocation) {
    auto vault = vault_of(invocation);
    if (!vault) co_return vault.error();
    auto binding = co_await vault->binding(invocation.arguments().one("NAME"));
    if (!binding) co_return binding.error();
    co_return invocation.print_object(describe(*binding));
}

void add_part_commands(CommandTable& table) {
    Command command = make_document_command("credential-vault credential", "list",
                                            "List a vault's credentials, without their values.",
                                            {kSandboxId}, list_credentials);
    command.examples = {{"credential-vault credential list SANDBOX_ID", "their names"}};
    table.commands.push_back(std::move(command));

    command = make_document_command(
        "credential-vault credential", "get", "Show one credential, without its value.",
        {kSandboxId, {"NAME", "The credential's name."}}, get_credential);
    command.examples = {{"credential-vault credential get SANDBOX_ID github", "when it changed"}};
    table.commands.push_back(std::move(command));

    command =
        make_document_command("credential-vault binding", "list",
                              "List which requests get credentials.", {kSandboxId}, list_bindings);
    command.examples = {{"credential-vault binding list SANDBOX_ID", "hosts, paths and kinds"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("credential-vault binding", "get", "Show one binding.",
                                    {kSandboxId, {"NAME", "The binding's name."}}, get_binding);
    command.examples = {{"credential-vault binding get SANDBOX_ID github-api", "all of it"}};
    table.commands.push_back(std::move(command));
}

}  // namespace

void add_credential_vault_commands(CommandTable& table) {
    const Option file{"--file", 'f', "PATH", "JSON or YAML; - for standard input.", false, true};
    Command command =
        make_document_command(kVaultGroup, "create", "Give a sandbox a vault with credentials.",
                              {kSandboxId}, create_vault);
    command.options = {file};
    command.details =
        "The sandbox must have been created with --credential-proxy and a network policy that\n"
        "allows the hosts. The file has two lists:\n\n"
        "credentials:\n"
        "  - name: github\n"
        "    source: {type: inline, value: the-secret}\n"
        "bindings:\n"
        "  - name: github-api\n"
        "    match: {hosts: [api.github.com]}\n"
        "    auth: {type: bearer, credential: github}\n\n"
        "auth.type is bearer, basic, apiKey (with name), customHeaders (with headers) or\n"
        "passthrough. Secrets are never printed.";
    command.examples = {
        {"credential-vault create SANDBOX_ID --file vault.yaml", "from a file"},
        {"credential-vault create SANDBOX_ID --file - < vault.json", "from standard input"}};
    table.commands.push_back(std::move(command));

    command = make_document_command(kVaultGroup, "get", "Show a vault, without its secrets.",
                                    {kSandboxId}, get_vault);
    command.examples = {{"credential-vault get SANDBOX_ID -o yaml", "credentials and bindings"}};
    table.commands.push_back(std::move(command));

    command = make_document_command(kVaultGroup, "patch", "Change a vault, all or nothing.",
                                    {kSandboxId}, patch);
    command.options = {file};
    command.details =
        "The file has credentials and/or bindings, each with add, replace and delete lists, and\n"
        "may name the expectedRevision:\n\n"
        "expectedRevision: 1\n"
        "credentials:\n"
        "  replace: [{name: github, source: {value: the-new-secret}}]\n"
        "bindings:\n"
        "  delete: [github-api]";
    command.examples = {
        {"credential-vault patch SANDBOX_ID --file change.yaml", "a new value for a secret"}};
    table.commands.push_back(std::move(command));

    command = make_document_command(kVaultGroup, "delete", "Take a sandbox's vault away.",
                                    {kSandboxId}, remove_vault);
    command.examples = {{"credential-vault delete SANDBOX_ID", "requests go out as they are"}};
    table.commands.push_back(std::move(command));

    add_part_commands(table);
}

}  // namespace opensandbox::cli
