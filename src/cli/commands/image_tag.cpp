#include "cli/image_options.hpp"
#include "cli/invocation.hpp"
#include "opensandbox/images.hpp"
#include "sdk/document/describe.hpp"

namespace opensandbox::cli {

namespace {

Awaitable<Outcome> tag(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    auto change = read_image_config(arguments);
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Images images(*connection);
    auto image =
        co_await images.tag(arguments.one("SOURCE"), arguments.one("NEW"), std::move(change));
    if (!image) co_return image.error();
    co_return invocation.print_object(describe(*image));
}

}  // namespace

void add_image_tag_command(CommandTable& table) {
    Command command = make_document_command(
        "image", "tag", "Give an image another name, and another config if wanted.",
        {{"SOURCE", "NAME, NAME:TAG or NAME@DIGEST."}, {"NEW", "NAME or NAME:TAG."}}, tag);
    command.options = image_config_options();
    command.examples = {
        {"image tag python:3.12 mine:1", "the same image under another name"},
        {"image tag mine:1 mine:2 -e DEBUG=1 --cmd '[\"python3\"]'", "with another config"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
