#include "cli/invocation.hpp"
#include "image/directory_archive.hpp"
#include "imagebuild/cache_key.hpp"
#include "net/task.hpp"
#include "opensandbox/images.hpp"
#include "sdk/document/describe.hpp"
#include "sdk/stdio/standard_streams.hpp"
#include "sdk/transport.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace opensandbox::cli {

namespace {

constexpr std::string_view kReference = "REFERENCE";

/// A directory as the archive that the server imports. Reading it blocks on the disk, so it has a
/// thread of its own.
class DirectoryReader : public sdk::ByteReader {
  public:
    explicit DirectoryReader(image::DirectoryArchive archive) : archive_(std::move(archive)) {}

    Awaitable<sdk::Result<std::size_t>> read_some(std::span<char> into) override {
        std::function<opensandbox::Result<std::size_t>()> work = [this, into] {
            return archive_.read(into);
        };
        auto count =
            co_await net::run_blocking<opensandbox::Result<std::size_t>>(thread_, std::move(work));
        if (!count) co_return sdk::to_public(count.error());
        co_return *count;
    }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return std::nullopt; }

  private:
    image::DirectoryArchive archive_;
    asio::thread_pool thread_{1};
};

sdk::Result<std::unique_ptr<sdk::ByteReader>> open_source(Invocation& invocation,
                                                          const std::string& path) {
    if (path == "-") return sdk::open_standard_input(invocation.executor());
    struct stat info{};
    if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
        auto archive = image::DirectoryArchive::open(path);
        if (!archive) return sdk::to_public(archive.error());
        return std::unique_ptr<sdk::ByteReader>(
            std::make_unique<DirectoryReader>(std::move(*archive)));
    }
    return sdk::read_file(path);
}

Awaitable<Outcome> list_images(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Images images(*connection);
    auto found = co_await images.list();
    if (!found) co_return found.error();
    json::array items;
    json::array rows;
    const bool all = invocation.arguments().has("--all");
    for (const auto& image : *found) {
        if (!all && imagebuild::is_cache_reference(image.reference)) continue;
        items.emplace_back(describe(image));
        json::object row = describe(image);
        row["size"] = to_size_text(image.size);
        row["digest"] = image.digest.substr(0, 19);
        rows.emplace_back(std::move(row));
    }
    const json::object document{{"items", std::move(items)}};
    co_return invocation.print_list(document, rows,
                                    {{"REFERENCE", "reference"},
                                     {"DIGEST", "digest"},
                                     {"SIZE", "size"},
                                     {"CREATED_AT", "created_at"}});
}

Awaitable<Outcome> import(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const std::string path = arguments.one("PATH");
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    auto source = open_source(invocation, path);
    if (!source) co_return source.error();
    sdk::Images images(*connection);
    TransferProgress progress(invocation.terminal(), path);
    sdk::Progress show = [&](std::uint64_t done, std::uint64_t total) {
        if (total != 0 && done == total) {
            invocation.terminal().show_progress(path + "  sent, the server unpacks it…");
        } else {
            progress.update(done, total);
        }
    };
    auto image = co_await images.import_archive(arguments.one(kReference), **source, show);
    invocation.terminal().clear_progress();
    if (!image) co_return image.error();
    co_return invocation.print_object(describe(*image));
}

Awaitable<Outcome> remove_image(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Images images(*connection);
    const std::string reference = invocation.arguments().one(kReference);
    auto removed = co_await images.remove(reference);
    if (!removed) co_return removed.error();
    co_return invocation.print_done("Removed: " + reference);
}

Awaitable<Outcome> inspect_image(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Images images(*connection);
    auto details = co_await images.inspect(invocation.arguments().one(kReference));
    if (!details) co_return details.error();
    co_return invocation.print_object(describe(*details));
}

/// Removes the kept steps of builds, but for those in use.
Awaitable<Outcome> prune_build_cache(Invocation& invocation, sdk::Images images) {
    auto found = co_await images.list();
    if (!found) co_return found.error();
    json::array gone;
    std::string text;
    for (const auto& image : *found) {
        if (!imagebuild::is_cache_reference(image.reference)) continue;
        auto removed = co_await images.remove(image.reference);
        if (removed) {
            gone.emplace_back(image.reference);
            text += "Removed: " + image.reference + "\n";
        } else if (removed.error().code() != sdk::ErrorCode::conflict &&
                   removed.error().code() != sdk::ErrorCode::not_found) {
            co_return removed.error();
        }
    }
    if (invocation.format() == Format::table) co_return invocation.print_raw(text);
    co_return invocation.print_object(json::object{{"removed", std::move(gone)}});
}

Awaitable<Outcome> prune(Invocation& invocation) {
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::Images images(*connection);
    if (invocation.arguments().has("--build-cache")) {
        co_return co_await prune_build_cache(invocation, images);
    }
    auto pruned = co_await images.prune(invocation.arguments().has("--all"));
    if (!pruned) co_return pruned.error();
    json::object document;
    document["removed"] = json::array(pruned->removed.begin(), pruned->removed.end());
    document["freed"] = pruned->freed;
    if (invocation.format() != Format::table) co_return invocation.print_object(document);
    std::string text;
    for (const std::string& reference : pruned->removed)
        text += "Removed: " + reference + "\n";
    co_return invocation.print_raw(text + "Freed: " + to_size_text(pruned->freed) + "\n");
}

}  // namespace

void add_image_commands(CommandTable& table) {
    Command command =
        make_document_command("image", "list", "List the server's images.", {}, list_images);
    command.options = {{"--all", 'a', "", "Also the steps that 'image build' keeps."}};
    command.examples = {{"image list", "those that have a name of their own"}};
    table.commands.push_back(std::move(command));

    command =
        make_document_command("image", "import", "Give the server an image from this machine.",
                              {{"PATH", "Archive or directory; - for standard input."},
                               {kReference, "Name for it: NAME or NAME:TAG."}},
                              import);
    command.details =
        "An archive is an OCI layout, what 'docker save' writes, or a root file system; plain,\n"
        "gzip or zstd. A directory is a root file system or an OCI layout.";
    command.examples = {{"image import rootfs.tar.gz alpine:3", "an archive"},
                        {"image import ./rootfs mine", "a directory"},
                        {"image import - python:3.12 < python.tar", "standard input"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("image", "remove", "Remove an image that no sandbox uses.",
                                    {{kReference, "NAME or NAME:TAG."}}, remove_image);
    command.examples = {{"image remove alpine:3", "its name, and what nothing else needs of it"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("image", "inspect", "Show what an image is made of.",
                                    {{kReference, "An image of the server."}}, inspect_image);
    command.examples = {{"image inspect alpine:3 -o json", "layers, environment and entrypoint"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("image", "prune",
                                    "Remove images that lost their name to another.", {}, prune);
    command.options = {
        {"--all", 'a', "", "Every image that no sandbox and no snapshot uses."},
        {"--build-cache", 0, "", "The steps that 'image build' keeps, and only these."},
    };
    command.examples = {{"image prune", "what lost its name"},
                        {"image prune --build-cache", "the kept steps of builds"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
