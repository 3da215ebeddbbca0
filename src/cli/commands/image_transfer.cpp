#include "cli/invocation.hpp"
#include "cli/layer_display.hpp"
#include "cli/secret_input.hpp"
#include "opensandbox/images.hpp"
#include "sdk/document/describe.hpp"
#include "sdk/stdio/standard_streams.hpp"

namespace opensandbox::cli {

namespace {

constexpr std::string_view kTransferred = "REFERENCE";

const std::vector<Option>& login_options() {
    static const std::vector<Option> options{
        {"--username", 'u', "USER", "User at the registry, for this time only."},
        {"--password-stdin", 0, "", "Read the password from standard input."},
    };
    return options;
}

/// The login of the command line, when there is one.
sdk::Result<std::optional<sdk::RegistryAuth>> optional_login(Arguments& arguments) {
    std::optional<sdk::RegistryAuth> login;
    auto user = arguments.get("--username");
    if (!user && !arguments.has("--password-stdin")) return login;
    if (!user) {
        arguments.refuse("--password-stdin: needs --username");
        return login;
    }
    auto password = arguments.has("--password-stdin") ? read_secret() : ask("Password: ", true);
    if (!password) return password.error();
    login.emplace(*user, std::move(*password));
    return login;
}

Awaitable<Outcome> pull(Invocation& invocation) {
    const std::string reference = invocation.arguments().one(kTransferred);
    auto login = optional_login(invocation.arguments());
    if (!login) co_return login.error();
    if (invocation.arguments().problem()) co_return *invocation.arguments().problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Images images(*connection);
    LayerDisplay display(invocation.terminal(), reference);
    auto image = co_await images.pull(reference, std::move(*login), display.listener());
    invocation.terminal().clear_progress();
    if (!image) co_return image.error();
    co_return invocation.print_object(describe(*image));
}

Awaitable<Outcome> push(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const std::string reference = arguments.one(kTransferred);
    const auto destinations = arguments.rest("DESTINATION");
    const std::string destination = destinations.empty() ? std::string() : destinations.front();
    auto login = optional_login(arguments);
    if (!login) co_return login.error();
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Images images(*connection);
    LayerDisplay display(invocation.terminal(), destination.empty() ? reference : destination);
    auto pushed =
        co_await images.push(reference, destination, std::move(*login), display.listener());
    invocation.terminal().clear_progress();
    if (!pushed) co_return pushed.error();
    co_return invocation.print_object(describe(*pushed));
}

Awaitable<Outcome> export_to_output(Invocation& invocation, sdk::Images images,
                                    std::string reference) {
    sdk::StandardOutputWriter output(invocation.executor());
    auto size = co_await images.export_archive(std::move(reference), output);
    if (output.reader_gone()) co_return kSuccess;
    co_await output.flush();
    if (!size) co_return size.error();
    co_return kSuccess;
}

Awaitable<Outcome> export_image(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const std::string reference = arguments.one(kTransferred);
    const std::string path = arguments.one("PATH");
    if (path == "-" && invocation.terminal().output_is_terminal()) {
        arguments.refuse("PATH", path, "a file: an archive is nothing for a terminal");
        co_return *arguments.problem();
    }
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Images images(*connection);
    if (path == "-") co_return co_await export_to_output(invocation, images, reference);
    auto file = sdk::FileWriter::create(path);
    if (!file) co_return file.error();
    TransferProgress progress(invocation.terminal(), reference);
    sdk::Progress show = [&](std::uint64_t done, std::uint64_t total) {
        progress.update(done, total);
    };
    auto size = co_await images.export_archive(reference, **file, show);
    if (!size) co_return size.error();
    auto kept = (*file)->commit();
    if (!kept) co_return kept.error();
    co_return invocation.print_done("Exported: " + reference + " → " + path);
}

}  // namespace

void add_image_transfer_commands(CommandTable& table) {
    Command command = make_document_command(
        "image", "pull", "Have the server pull an image from its registry.",
        {{kTransferred, "NAME, NAME:TAG or NAME@sha256:…; docker.io unless it names a registry."}},
        pull);
    command.options = login_options();
    command.details =
        "Without --username the server uses what `login` stored in its state directory, else\n"
        "~/.docker/config.json, else no login. A create pulls an image that is missing by itself.";
    command.examples = {
        {"image pull python:3.12", "from docker.io"},
        {"image pull registry.example/app:1 -u me --password-stdin < secret", "with a login"}};
    table.commands.push_back(std::move(command));

    command = make_document_command(
        "image", "push", "Have the server push an image to a registry.",
        {{kTransferred, "An image of the server."},
         {"DESTINATION", "REGISTRY/NAME[:TAG] (default: the image's own name).",
          Positional::Count::optional}},
        push);
    command.options = login_options();
    command.examples = {{"image push app:1 registry.example/team/app:1", "under another name"}};
    table.commands.push_back(std::move(command));

    command = make_document_command(
        "image", "export", "Write an image to an archive on this machine.",
        {{kTransferred, "An image of the server."},
         {"PATH", "File, replaced when all has come; - for standard output."}},
        export_image);
    command.details = "The archive is a tar of an OCI layout, which `image import` takes again.";
    command.examples = {{"image export app:1 app.tar", "into a file"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
