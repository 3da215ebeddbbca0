#include "imagebuild/step_runner.hpp"

#include "imagebuild/context_archive.hpp"
#include "imagebuild/path_pattern.hpp"
#include "imagebuild/users.hpp"
#include "net/task.hpp"
#include "sdk/transport.hpp"

#include <algorithm>

namespace opensandbox::imagebuild {
namespace {

constexpr std::size_t kLargestTable = std::size_t{4} << 20;

/// What a copy goes to: a directory, and the name of a single file in it when it is another one.
struct Placement {
    std::string directory;
    std::string rename;
};

/// Links are followed. Only what is certain counts: an error is no directory.
Awaitable<bool> is_directory(sdk::Files files, std::string path) {
    auto listed = co_await files.list(path + "/.", 0);
    co_return listed.has_value();
}

Awaitable<Placement> place_file(sdk::Files files, std::string destination, bool into_directory) {
    const std::string path = clean_absolute_path(destination);
    if (into_directory || path == "/") co_return Placement(path, "");
    const bool directory = co_await is_directory(files, path);
    if (directory) co_return Placement(path, "");
    const auto slash = path.rfind('/');
    co_return Placement(slash == 0 ? std::string("/") : path.substr(0, slash),
                        path.substr(slash + 1));
}

sdk::Permissions permissions_of(const CopyStep& step) {
    sdk::Permissions permissions;
    if (!step.owner.empty()) permissions.owner = step.owner;
    if (!step.group.empty()) permissions.group = step.group;
    permissions.mode = step.mode;
    return permissions;
}

/// Bytes that a thread produces.
class ThreadReader : public sdk::ByteReader {
  public:
    using Read = std::function<Result<std::size_t>(std::span<char>)>;
    ThreadReader(asio::thread_pool& thread, Cancellation& cancellation, Read read)
        : thread_(thread), cancellation_(cancellation), read_(std::move(read)) {}

    Awaitable<sdk::Result<std::size_t>> read_some(std::span<char> into) override {
        if (cancellation_.requested()) co_return Cancellation::error();
        std::function<Result<std::size_t>()> work = [this, into] { return read_(into); };
        auto count = co_await net::run_blocking<Result<std::size_t>>(thread_, std::move(work));
        if (!count) co_return sdk::to_public(count.error());
        co_return *count;
    }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return std::nullopt; }

  private:
    asio::thread_pool& thread_;
    Cancellation& cancellation_;
    Read read_;
};

/// Stops another reader when the build is given up.
class CancellableReader : public sdk::ByteReader {
  public:
    CancellableReader(std::unique_ptr<sdk::ByteReader> from, Cancellation& cancellation)
        : from_(std::move(from)), cancellation_(cancellation) {}
    Awaitable<sdk::Result<std::size_t>> read_some(std::span<char> into) override {
        if (cancellation_.requested()) co_return Cancellation::error();
        co_return co_await from_->read_some(into);
    }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return from_->size(); }

  private:
    std::unique_ptr<sdk::ByteReader> from_;
    Cancellation& cancellation_;
};

Awaitable<std::string> read_or_empty(sdk::Files files, std::string path) {
    auto text = co_await files.read(std::move(path), kLargestTable);
    co_return text ? std::move(*text) : std::string();
}

sdk::Error failure_of(const sdk::Execution& execution) {
    if (execution.exit_code) {
        std::string text =
            "the command ended with exit code " + std::to_string(*execution.exit_code);
        if (execution.signal) text += " (signal " + std::to_string(*execution.signal) + ")";
        return {sdk::ErrorCode::conflict, text};
    }
    std::string why = "for an unknown reason";
    if (execution.error) {
        why = execution.error->value.empty() ? execution.error->name : execution.error->value;
    }
    return {sdk::ErrorCode::conflict, "the command did not start: " + why};
}

/// The paths of one --from source: itself, or all that its wildcards match.
Awaitable<sdk::Result<std::vector<std::string>>> match(sdk::Files files, std::string source) {
    using Paths = std::vector<std::string>;
    const std::string path = clean_absolute_path(source);
    if (!has_wildcard(path)) co_return Paths{path};
    auto pattern = PathPattern::parse(path, PathPattern::Deep::no);
    if (!pattern) co_return sdk::to_public(pattern.error());
    const auto wildcard = path.find_first_of("*?[");
    const std::string top = path.substr(0, path.rfind('/', wildcard));
    const auto depth = std::ranges::count(path.substr(top.size()), '/');
    auto listed = co_await files.list(top.empty() ? "/" : top, static_cast<unsigned>(depth));
    if (!listed) co_return listed.error();
    Paths paths;
    for (const sdk::FileInfo& info : *listed) {
        const std::string full = clean_absolute_path(info.path);
        if (pattern->matches(full)) paths.push_back(full);
    }
    if (paths.empty()) {
        co_return sdk::Error(sdk::ErrorCode::not_found, "'" + source + "': nothing matches");
    }
    co_return paths;
}

}  // namespace

Awaitable<sdk::Result<sdk::CommandRequest>> StepRunner::command_of(sdk::Sandbox sandbox,
                                                                   RunStep step) {
    BuildUser user;
    if (!step.user.empty()) {
        const std::string passwd = co_await read_or_empty(sandbox.files(), "/etc/passwd");
        const std::string group = co_await read_or_empty(sandbox.files(), "/etc/group");
        auto resolved = resolve_user(step.user, passwd, group);
        if (!resolved) co_return sdk::to_public(resolved.error());
        user = std::move(*resolved);
    }
    sdk::CommandRequest request(std::move(step.arguments));
    request.working_directory = std::move(step.directory);
    request.uid = user.uid;
    request.gid = user.gid;
    if (!step.environment.contains("HOME")) step.environment["HOME"] = user.home;
    for (const auto* variables : {&step.environment, &step.proxies}) {
        for (const auto& [name, value] : *variables)
            request.environment.emplace_back(name, value);
    }
    co_return request;
}

Awaitable<sdk::Status> StepRunner::run(sdk::Sandbox sandbox, RunStep step) {
    auto request = co_await command_of(sandbox, std::move(step));
    if (!request) co_return request.error();
    if (cancellation_.requested()) co_return Cancellation::error();
    sdk::Commands commands = sandbox.commands();
    auto stream = co_await commands.stream(std::move(*request));
    if (!stream) co_return stream.error();
    if (cancellation_.requested()) co_return Cancellation::error();
    Cancellation::Scope scope(cancellation_, [&stream] { stream->abort(); });
    sdk::Execution execution;
    bool finished = false;
    for (;;) {
        auto event = co_await stream->next();
        if (cancellation_.requested()) co_return Cancellation::error();
        if (!event) co_return event.error();
        if (!event->has_value()) break;
        const sdk::Event& what = **event;
        if (what.type == sdk::EventType::standard_output ||
            what.type == sdk::EventType::standard_error) {
            co_await output_(what.text);
            if (cancellation_.requested()) co_return Cancellation::error();
        } else {
            finished = sdk::apply_terminal_event(what, execution) || finished;
        }
    }
    if (!finished) {
        co_return sdk::Error(sdk::ErrorCode::bad_gateway,
                             "the server ended the output without saying how the command ended");
    }
    if (execution.exit_code == 0) co_return sdk::Status();
    co_return failure_of(execution);
}

Awaitable<sdk::Status> StepRunner::make_directory(sdk::Sandbox sandbox, DirectoryStep step) {
    // An archive of nothing: what it makes are the missing directories, whatever their names are.
    const std::string nothing(1024, '\0');
    auto archive = sdk::read_bytes(nothing);
    sdk::Permissions permissions;
    if (!step.owner.empty()) permissions.owner = std::move(step.owner);
    if (!step.group.empty()) permissions.group = std::move(step.group);
    sdk::Files files = sandbox.files();
    co_return co_await files.unpack(std::move(step.path), *archive, std::move(permissions));
}

Awaitable<sdk::Status> StepRunner::send(sdk::Sandbox sandbox, sdk::Permissions permissions,
                                        std::string directory, Context& context,
                                        Selection selection, std::string rename) {
    ContextArchive archive(context, std::move(selection), std::move(rename));
    ThreadReader reader(files_, cancellation_,
                        [&](std::span<char> into) { return archive.read(into); });
    sdk::Files files = sandbox.files();
    co_return co_await files.unpack(std::move(directory), reader, std::move(permissions));
}

Awaitable<sdk::Status> StepRunner::send_file(sdk::Sandbox sandbox, sdk::Permissions permissions,
                                             std::string directory, std::string path) {
    auto file = sdk::read_file(path);
    if (!file) co_return file.error();
    CancellableReader reader(std::move(*file), cancellation_);
    sdk::Files files = sandbox.files();
    auto unpacked = co_await files.unpack(std::move(directory), reader, std::move(permissions));
    if (!unpacked) co_return unpacked.error().within(path);
    co_return sdk::Status();
}

Awaitable<sdk::Status> StepRunner::copy(sdk::Sandbox sandbox, CopyStep step, Context& context,
                                        Selection selection) {
    if (step.unpack) {
        std::function<Result<std::vector<std::string>>()> work = [&] {
            return take_archives(context, selection);
        };
        auto archives =
            co_await net::run_blocking<Result<std::vector<std::string>>>(files_, std::move(work));
        if (!archives) co_return sdk::to_public(archives.error());
        for (const std::string& path : *archives) {
            std::string directory = clean_absolute_path(step.destination);
            auto sent =
                co_await send_file(sandbox, permissions_of(step), std::move(directory), path);
            if (!sent) co_return sent;
        }
        if (selection.members.empty()) co_return sdk::Status();
    }
    if (!selection.single_file) {
        std::string directory = clean_absolute_path(step.destination);
        co_return co_await send(sandbox, permissions_of(step), std::move(directory), context,
                                std::move(selection), "");
    }
    Placement place = co_await place_file(sandbox.files(), step.destination, step.into_directory);
    co_return co_await send(sandbox, permissions_of(step), place.directory, context,
                            std::move(selection), place.rename);
}

Awaitable<sdk::Status> StepRunner::copy(sdk::Sandbox sandbox, CopyStep step, sdk::Sandbox from) {
    std::vector<std::string> paths;
    for (const std::string& source : step.sources) {
        auto matched = co_await match(from.files(), source);
        if (!matched) co_return matched.error().within("--from=" + *step.from);
        paths.insert(paths.end(), matched->begin(), matched->end());
    }
    if (paths.size() > 1 && !step.into_directory) {
        co_return sdk::Error(sdk::ErrorCode::invalid_argument,
                             "several things match: the destination must end with /");
    }
    sdk::Files source = from.files();
    sdk::Files target = sandbox.files();
    for (const std::string& path : paths) {
        const bool directory = co_await is_directory(source, path);
        Placement place(clean_absolute_path(step.destination), "");
        if (!directory) {
            place = co_await place_file(target, step.destination, step.into_directory);
        }
        auto packed = co_await source.pack(path, place.rename);
        if (!packed) {
            co_return packed.error().within("--from=" + *step.from + " '" + path + "'");
        }
        CancellableReader reader(std::move(*packed), cancellation_);
        auto unpacked = co_await target.unpack(place.directory, reader, permissions_of(step));
        if (!unpacked) co_return unpacked;
    }
    co_return sdk::Status();
}

Result<std::vector<std::string>> take_archives(const Context& context, Selection& selection) {
    std::vector<std::string> archives;
    std::vector<Member> rest;
    for (Member& member : selection.members) {
        const ContextEntry& entry = context.entries().find(member.source)->second;
        bool unpacked = false;
        if (member.named && entry.kind == EntryKind::file) {
            auto archive = is_archive(context.directory() / member.source);
            if (!archive) return archive.error();
            unpacked = *archive;
        }
        if (unpacked) {
            archives.push_back((context.directory() / member.source).string());
        } else {
            rest.push_back(std::move(member));
        }
    }
    selection.members = std::move(rest);
    return archives;
}

}  // namespace opensandbox::imagebuild
