#include "cli/invocation.hpp"
#include "sdk/stdio/standard_streams.hpp"

#include <sys/stat.h>

#include <unistd.h>

namespace opensandbox::cli {

namespace {

constexpr std::uint32_t kDefaultMode = 0644;
const Positional kPathInside{"PATH", "Path in the sandbox."};

std::string base_name(std::string_view path) {
    while (path.size() > 1 && path.ends_with('/'))
        path.remove_suffix(1);
    return std::string(path.substr(path.find_last_of('/') + 1));
}

/// "dir/" means a file of the same name in that directory.
std::string in_directory(const std::string& path, std::string_view name) {
    return path.ends_with('/') ? path + base_name(name) : path;
}

/// Bytes go through as they are; that is right for UTF-8 only.
void check_encoding(Arguments& arguments) {
    if (auto encoding = arguments.get("--encoding")) {
        static_cast<void>(arguments.choice("--encoding", *encoding, {"utf-8", "utf8"}));
    }
}

sdk::Permissions read_permissions(Arguments& arguments, std::uint32_t mode) {
    sdk::Permissions permissions(mode);
    if (arguments.has("--mode")) permissions.mode = arguments.file_mode("--mode");
    permissions.owner = arguments.get("--owner");
    permissions.group = arguments.get("--group");
    return permissions;
}

sdk::Progress show(TransferProgress& progress) {
    return [&progress](std::uint64_t done, std::uint64_t total) { progress.update(done, total); };
}

Awaitable<Outcome> cat(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    check_encoding(arguments);
    if (arguments.problem()) co_return *arguments.problem();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    sdk::StandardOutputWriter output(invocation.executor());
    auto size = co_await sandbox->files().download(arguments.one("PATH"), output);
    if (output.reader_gone()) co_return kSuccess;
    co_await output.flush();
    if (!size) co_return size.error();
    co_return kSuccess;
}

Awaitable<Outcome> write(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    check_encoding(arguments);
    sdk::Permissions permissions = read_permissions(arguments, kDefaultMode);
    if (arguments.problem()) co_return *arguments.problem();
    const auto content = arguments.get("--content");
    const std::string path = arguments.one("PATH");
    auto source = content ? sdk::Result<std::unique_ptr<sdk::ByteReader>>(sdk::read_bytes(*content))
                          : sdk::open_standard_input(invocation.executor());
    if (!source) co_return source.error();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    auto written = co_await sandbox->files().upload(path, **source, std::move(permissions));
    if (!written) co_return written.error();
    co_return invocation.print_done("Written: " + path);
}

Awaitable<Outcome> upload(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const std::string local = arguments.one("LOCAL");
    const std::string remote = in_directory(arguments.one("REMOTE"), local);
    struct stat info{};
    const bool standard_input = local == "-";
    if (!standard_input && ::stat(local.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
        arguments.refuse("LOCAL", local, "a file; directories cannot be uploaded");
    }
    const std::uint32_t mode = standard_input ? kDefaultMode : info.st_mode & 0777;
    sdk::Permissions permissions = read_permissions(arguments, mode == 0 ? kDefaultMode : mode);
    if (arguments.problem()) co_return *arguments.problem();
    auto source =
        standard_input ? sdk::open_standard_input(invocation.executor()) : sdk::read_file(local);
    if (!source) co_return source.error();
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    TransferProgress progress(invocation.terminal(), remote);
    auto sent =
        co_await sandbox->files().upload(remote, **source, std::move(permissions), show(progress));
    if (!sent) co_return sent.error();
    co_return invocation.print_done("Uploaded: " + local + " → " + remote);
}

Awaitable<Outcome> download_to_output(Invocation& invocation, sdk::Files files,
                                      std::string remote) {
    sdk::StandardOutputWriter output(invocation.executor());
    auto size = co_await files.download(std::move(remote), output);
    if (output.reader_gone()) co_return kSuccess;
    co_await output.flush();
    if (!size) co_return size.error();
    co_return kSuccess;
}

Awaitable<Outcome> download(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    const std::string remote = arguments.one("REMOTE");
    std::string local = arguments.one("LOCAL");
    auto sandbox = co_await invocation.sandbox();
    if (!sandbox) co_return sandbox.error();
    if (local == "-") {
        co_return co_await download_to_output(invocation, sandbox->files(), remote);
    }
    struct stat info{};
    if (::stat(local.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
        local += (local.ends_with('/') ? "" : "/") + base_name(remote);
    }
    auto file = sdk::FileWriter::create(local);
    if (!file) co_return file.error();
    TransferProgress progress(invocation.terminal(), remote);
    auto size = co_await sandbox->files().download(remote, **file, show(progress));
    if (!size) co_return size.error();
    auto kept = (*file)->commit();
    if (!kept) co_return kept.error();
    co_return invocation.print_done("Downloaded: " + remote + " → " + local);
}

}  // namespace

void add_file_transfer_commands(CommandTable& table) {
    const Option encoding{"--encoding", 0, "NAME", "Only utf-8: bytes go through as they are."};
    Command command =
        make_document_command("file", "cat", "Print a file.", {kSandboxId, kPathInside}, cat);
    command.options = {encoding};
    command.formats = {Format::raw};
    command.examples = {{"file cat SANDBOX_ID /etc/os-release", "print it"}};
    table.commands.push_back(std::move(command));

    const std::vector<Option> permissions{
        {"--mode", 0, "OCTAL", "Permission bits, such as 644 or 0755."},
        {"--owner", 0, "NAME", "Owner."},
        {"--group", 0, "NAME", "Group."}};
    command = make_document_command("file", "write", "Write text or standard input to a file.",
                                    {kSandboxId, kPathInside}, write);
    command.options = {{"--content", 'c', "TEXT", "Text to write (default: standard input)."},
                       encoding};
    command.options.insert(command.options.end(), permissions.begin(), permissions.end());
    command.examples = {{"file write SANDBOX_ID /tmp/a.txt -c hello", "a word"},
                        {"file write SANDBOX_ID /data/run.sh --mode 755 < run.sh", "a script"}};
    table.commands.push_back(std::move(command));

    command = make_document_command(
        "file", "upload", "Copy a local file into the sandbox.",
        {kSandboxId,
         {"LOCAL", "Local file; - for standard input."},
         {"REMOTE", "Path in the sandbox; with / at its end, a directory there."}},
        upload);
    command.options = permissions;
    command.details = "The file keeps its permission bits unless --mode says otherwise.";
    command.examples = {{"file upload SANDBOX_ID data.csv /data/data.csv", "one file"},
                        {"file upload SANDBOX_ID - /data/all.tar < all.tar", "standard input"}};
    table.commands.push_back(std::move(command));

    command = make_document_command("file", "download", "Copy a file out of the sandbox.",
                                    {kSandboxId,
                                     {"REMOTE", "Path in the sandbox."},
                                     {"LOCAL", "Local file or directory; - for standard output."}},
                                    download);
    command.details = "A local file is replaced only when all of it has come.";
    command.examples = {{"file download SANDBOX_ID /data/out.png .", "into this directory"}};
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
