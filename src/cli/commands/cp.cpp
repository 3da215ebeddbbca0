#include "cli/copy_place.hpp"
#include "cli/invocation.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace opensandbox::cli {

namespace {

namespace fs = std::filesystem;

constexpr unsigned kDepth = 1000;

/// One file to copy, by its path on either side.
struct CopyItem {
    std::string from;
    std::string to;
    std::uint64_t size = 0;
    std::uint32_t mode = 0644;
};

struct CopyPlan {
    std::vector<CopyItem> files;
    std::vector<std::string> directories;  ///< on the receiving side, parents first
    std::vector<std::string> left_out;
    std::uint64_t size = 0;

    void add(CopyItem item) {
        size += item.size;
        files.push_back(std::move(item));
    }
};

/// Progress over all files of a copy.
class CopyProgress {
  public:
    CopyProgress(Terminal& terminal, std::string what, std::uint64_t total)
        : shown_(terminal, std::move(what)), total_(total) {}
    [[nodiscard]] sdk::Progress of_next() {
        return [this](std::uint64_t done, std::uint64_t) { shown_.update(before_ + done, total_); };
    }
    void finished(std::uint64_t size) { before_ += size; }

  private:
    TransferProgress shown_;
    std::uint64_t total_;
    std::uint64_t before_ = 0;
};

sdk::Error file_error(const std::string& path, const std::error_code& why) {
    return {sdk::ErrorCode::io, path + ": " + why.message()};
}

std::string join(const std::string& directory, const std::string& name) {
    return directory.ends_with('/') ? directory + name : directory + "/" + name;
}

/// Links to files are copied as what they point to; those to directories are left out, since they
/// may lead in circles.
sdk::Result<CopyPlan> plan_upload(const std::string& local, const std::string& remote) {
    CopyPlan plan;
    std::error_code failed;
    struct stat info{};
    if (::stat(local.c_str(), &info) != 0) {
        return sdk::Error(sdk::ErrorCode::not_found, local + ": no such file or directory");
    }
    if (!S_ISDIR(info.st_mode)) {
        plan.add({local, remote, static_cast<std::uint64_t>(info.st_size), info.st_mode & 0777U});
        return plan;
    }
    plan.directories.push_back(remote);
    fs::recursive_directory_iterator at(local, failed);
    if (failed) return file_error(local, failed);
    for (; at != fs::recursive_directory_iterator(); at.increment(failed)) {
        const std::string path = at->path().string();
        const std::string to = join(remote, at->path().lexically_relative(local).string());
        const bool link = at->is_symlink(failed);
        if (::stat(path.c_str(), &info) != 0 ||
            (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) || (link && S_ISDIR(info.st_mode))) {
            plan.left_out.push_back(path);
        } else if (S_ISDIR(info.st_mode)) {
            plan.directories.push_back(to);
        } else {
            plan.add({path, to, static_cast<std::uint64_t>(info.st_size), info.st_mode & 0777U});
        }
    }
    if (failed) return file_error(local, failed);
    return plan;
}

void plan_entry(const std::string& remote, const std::string& local, const sdk::FileInfo& entry,
                CopyPlan& plan) {
    auto below = path_below(remote, entry.path);
    if (!below || entry.type == sdk::FileType::symlink || entry.type == sdk::FileType::other) {
        plan.left_out.push_back(entry.path);
        return;
    }
    const std::string to = join(local, *below);
    if (entry.type == sdk::FileType::directory) {
        plan.directories.push_back(to);
    } else {
        plan.add({entry.path, to, entry.size, entry.mode & 0777});
    }
}

Awaitable<sdk::Result<CopyPlan>> plan_download(sdk::Files files, std::string remote,
                                               std::string local) {
    CopyPlan plan;
    std::vector<std::string> paths(1, remote);
    auto info = co_await files.info(std::move(paths));
    if (!info) co_return info.error();
    const sdk::FileInfo& root = info->front();
    if (root.type != sdk::FileType::directory) {
        plan.add({remote, local, root.size, root.mode & 0777});
        co_return plan;
    }
    plan.directories.push_back(local);
    auto entries = co_await files.list(root.path, kDepth);
    if (!entries) co_return entries.error();
    for (const auto& entry : *entries)
        plan_entry(root.path, local, entry, plan);
    co_return plan;
}

Awaitable<sdk::Status> upload_all(sdk::Files files, std::shared_ptr<const CopyPlan> plan,
                                  CopyProgress& progress) {
    if (!plan->directories.empty()) {
        auto made = co_await files.make_directories(plan->directories);
        if (!made) co_return made.error();
    }
    for (const auto& item : plan->files) {
        auto source = sdk::read_file(item.from);
        if (!source) co_return source.error();
        sdk::Permissions permissions(item.mode == 0 ? 0600U : item.mode);
        auto sent = co_await files.upload(item.to, **source, permissions, progress.of_next());
        if (!sent) co_return sent.error().within(item.from);
        progress.finished(item.size);
    }
    co_return sdk::Status();
}

Awaitable<sdk::Status> download_all(sdk::Files files, std::shared_ptr<const CopyPlan> plan,
                                    CopyProgress& progress) {
    for (const auto& directory : plan->directories) {
        std::error_code failed;
        fs::create_directories(directory, failed);
        if (failed) co_return file_error(directory, failed);
    }
    for (const auto& item : plan->files) {
        auto file = sdk::FileWriter::create(item.to);
        if (!file) co_return file.error();
        auto size = co_await files.download(item.from, **file, progress.of_next());
        if (!size) co_return size.error().within(item.from);
        auto kept = (*file)->commit();
        if (!kept) co_return kept.error();
        std::error_code ignored;
        fs::permissions(item.to, static_cast<fs::perms>(item.mode), ignored);
        progress.finished(item.size);
    }
    co_return sdk::Status();
}

/// Where a copy to `to` goes: into it when it is a directory or is written as one.
Awaitable<sdk::Result<std::string>> remote_target(sdk::Files files, CopyPlace from, CopyPlace to) {
    if (to.path.ends_with('/')) co_return join(to.path, last_part(from.path));
    std::vector<std::string> paths(1, to.path);
    auto info = co_await files.info(std::move(paths));
    if (!info && info.error().code() != sdk::ErrorCode::not_found) co_return info.error();
    const bool into = info && info->front().type == sdk::FileType::directory;
    co_return into ? join(to.path, last_part(from.path)) : to.path;
}

std::string local_target(const CopyPlace& from, const CopyPlace& to) {
    std::error_code ignored;
    const bool into = to.path.ends_with('/') || fs::is_directory(to.path, ignored);
    return into ? join(to.path, last_part(from.path)) : to.path;
}

Outcome report(Invocation& invocation, const CopyPlan& plan, const std::string& from,
               const std::string& to) {
    for (const auto& path : plan.left_out)
        invocation.terminal().print_note("Left out, neither file nor directory: " + path);
    const std::string count =
        plan.files.size() == 1 ? "1 file" : std::to_string(plan.files.size()) + " files";
    return invocation.print_done("Copied: " + from + " → " + to + " (" + count + ", " +
                                 to_size_text(plan.size) + ")");
}

Awaitable<Outcome> copy(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    auto from = parse_copy_place(arguments.one("FROM"));
    auto to = parse_copy_place(arguments.one("TO"));
    constexpr std::string_view kForms = "a local path, or SANDBOX_ID:PATH";
    if (!from) arguments.refuse("FROM", arguments.one("FROM"), kForms);
    if (!to) arguments.refuse("TO", arguments.one("TO"), kForms);
    if (from && to && from->remote() == to->remote()) {
        arguments.refuse("FROM, TO: one of them must be local and the other SANDBOX_ID:PATH");
    }
    if (arguments.problem()) co_return *arguments.problem();
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();
    sdk::ConnectOptions options;
    options.skip_health_check = true;
    const std::string id = from->remote() ? from->sandbox : to->sandbox;
    auto sandbox = co_await sdk::Sandbox::connect(*connection, id, options);
    if (!sandbox) co_return sandbox.error();
    sdk::Files files = sandbox->files();

    std::string target;
    std::optional<sdk::Result<CopyPlan>> plan;
    if (from->remote()) {
        target = local_target(*from, *to);
        plan.emplace(co_await plan_download(files, from->path, target));
    } else {
        auto remote = co_await remote_target(files, *from, *to);
        if (!remote) co_return remote.error();
        target = *remote;
        plan.emplace(plan_upload(from->path, target));
    }
    if (!*plan) co_return plan->error();
    const auto what = std::make_shared<const CopyPlan>(std::move(**plan));
    sdk::Status done;
    {
        CopyProgress progress(invocation.terminal(), last_part(from->path), what->size);
        if (from->remote()) {
            done = co_await download_all(files, what, progress);
        } else {
            done = co_await upload_all(files, what, progress);
        }
    }
    if (!done) co_return done.error();
    const std::string shown = from->remote() ? target : id + ":" + target;
    co_return report(invocation, *what, arguments.one("FROM"), shown);
}

}  // namespace

void add_cp_command(CommandTable& table) {
    Command command = make_document_command(
        "", "cp", "Copy files and directories into a sandbox or out of it.",
        {{"FROM", "A local path, or SANDBOX_ID:PATH."},
         {"TO", "The same; a directory, or what ends with /, takes the copy by its name."}},
        copy);
    command.details =
        "Directories are copied with all that is in them. Permission bits are kept, owners are "
        "not.\n"
        "A local link to a file is copied as that file; other links, devices and sockets are left\n"
        "out and named. A file takes the place of an older one only when all of it has come.";
    command.examples = {
        {"cp data.csv SANDBOX_ID:/data/", "a file into the sandbox"},
        {"cp ./project SANDBOX_ID:/srv/project", "a directory"},
        {"cp SANDBOX_ID:/srv/out.png .", "out of the sandbox, into this directory"}};
    command.run = copy;
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
