#include "base/scope_exit.hpp"
#include "cli/invocation.hpp"
#include "imagebuild/builder.hpp"
#include "imagebuild/cache_key.hpp"
#include "net/task.hpp"
#include "sdk/document/describe.hpp"
#include "sdk/stdio/output_queue.hpp"
#include "sdk/transport.hpp"

#include <chrono>
#include <unistd.h>

namespace opensandbox::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestIgnoreFile = std::size_t{1} << 20;
/// What of a quiet build's output is shown when it fails, bytes.
constexpr std::size_t kTail = std::size_t{16} << 10;

/// Steps and output of a build on standard error: standard output is for the result.
class BuildLog {
  public:
    BuildLog(Invocation& invocation, bool quiet) : queue_(invocation.executor()), quiet_(quiet) {}

    imagebuild::BuildObserver observer() {
        imagebuild::BuildObserver observer;
        observer.on_step = [this](const std::string& stage, const std::string& text, bool cached) {
            tail_.clear();
            const std::string title = "[" + stage + "] " + text;
            if (quiet_) return;
            say(cached ? title + " (cached)\n" : title + "\n");
        };
        observer.on_output = [this](std::string text) { return write(std::move(text)); };
        return observer;
    }

    void say(std::string_view text) { queue_.append(STDERR_FILENO, text); }
    Awaitable<void> flush() { return queue_.flush(); }
    void give_up() { queue_.give_up(); }
    /// What the last step wrote, when it was not shown.
    [[nodiscard]] const std::string& tail() const { return tail_; }
    [[nodiscard]] bool quiet() const { return quiet_; }

  private:
    Awaitable<void> write(std::string text) {
        if (!quiet_) {
            say(text);
            co_return co_await queue_.make_room();
        }
        tail_ += text;
        if (tail_.size() > 2 * kTail) tail_.erase(0, tail_.size() - kTail);
    }

    sdk::OutputQueue queue_;
    bool quiet_;
    std::string tail_;
};

/// Dockerfile and rules, from the files that the command line names. Blocks for a moment.
sdk::Result<imagebuild::BuildRequest> read_files(Arguments& arguments) {
    imagebuild::BuildRequest request;
    request.context = arguments.one("CONTEXT");
    const fs::path file = arguments.get("--file") ? fs::path(*arguments.get("--file"))
                                                  : request.context / "Dockerfile";
    auto text = imagebuild::read_text_file(file, imagebuild::kLargestDockerfile);
    if (!text) return sdk::to_public(text.error());
    if (!*text) {
        return sdk::Error(sdk::ErrorCode::not_found,
                          file.string() + ": there is no such file; --file names another");
    }
    auto dockerfile = imagebuild::parse_dockerfile(**text, file.string());
    if (!dockerfile) return sdk::to_public(dockerfile.error());
    request.dockerfile = std::move(*dockerfile);
    // Rules of this Dockerfile's own go before those of the directory.
    for (const fs::path& path :
         {fs::path(file.string() + ".dockerignore"), request.context / ".dockerignore"}) {
        auto rules = imagebuild::read_text_file(path, kLargestIgnoreFile);
        if (!rules) return sdk::to_public(rules.error());
        if (!*rules) continue;
        auto parsed = imagebuild::IgnoreRules::parse(**rules, path.string());
        if (!parsed) return sdk::to_public(parsed.error());
        request.ignore = std::move(*parsed);
        break;
    }
    return request;
}

sdk::Result<imagebuild::BuildRequest> read_request(Invocation& invocation) {
    Arguments& arguments = invocation.arguments();
    auto request = read_files(arguments);
    if (!request) return request;
    request->references = arguments.all("--tag");
    request->target = arguments.get("--target").value_or("");
    request->use_cache = !arguments.has("--no-cache");
    if (auto cpu = arguments.get("--cpu")) request->resource_limits["cpu"] = *cpu;
    if (auto memory = arguments.get("--memory")) request->resource_limits["memory"] = *memory;
    return request;
}

/// NAME=value, or NAME for the value that this program's environment has.
std::optional<Failure> take_build_arguments(Arguments& arguments, imagebuild::Variables& into) {
    for (const std::string& text : arguments.all("--build-arg")) {
        const auto equals = text.find('=');
        const std::string name = text.substr(0, equals);
        if (name.empty()) {
            return Failure::usage("--build-arg: '" + text + "' must be NAME=VALUE or NAME");
        }
        if (equals != std::string::npos) {
            into[name] = text.substr(equals + 1);
        } else if (const char* value = ::getenv(name.c_str())) {
            into[name] = value;
        }
    }
    return std::nullopt;
}

Awaitable<Outcome> build_image(Invocation& invocation) {
    auto request = read_request(invocation);
    if (!request) co_return request.error();
    if (auto wrong = take_build_arguments(invocation.arguments(), request->arguments)) {
        co_return *wrong;
    }
    auto connection = invocation.connect();
    if (!connection) co_return connection.error();

    BuildLog log(invocation, invocation.arguments().has("--quiet"));
    imagebuild::Cancellation cancellation;
    Interrupts& interrupts = invocation.interrupts();
    interrupts.handle([&] {
        log.give_up();
        cancellation.cancel();
    });
    ScopeExit released([&] { interrupts.handle({}); });
    const auto started = std::chrono::steady_clock::now();
    auto built = co_await imagebuild::build_image(*connection, std::move(*request), log.observer(),
                                                  cancellation);
    if (!built) {
        if (!log.tail().empty()) log.say(log.tail());
        co_await log.flush();
        if (interrupts.received() != 0) {
            invocation.terminal().print_error(built.error().message());
            co_return 128 + interrupts.received();
        }
        co_return built.error();
    }
    for (const std::string& note : built->notes)
        log.say("Note: " + note + "\n");
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - started);
    if (!log.quiet()) {
        log.say("Built " + built->image.reference + ": " + std::to_string(built->steps) +
                " steps, " + std::to_string(built->cached) + " from the cache, in " +
                std::to_string(took.count()) + " ms\n");
    }
    co_await log.flush();
    if (log.quiet() && invocation.format() == Format::table) {
        co_return invocation.print_raw(built->image.digest + "\n");
    }
    co_return invocation.print_object(describe(built->image));
}

}  // namespace

void add_image_build_command(CommandTable& table) {
    Command command =
        make_document_command("image", "build", "Build an image from a Dockerfile.",
                              {{"CONTEXT", "Directory that COPY takes files from."}}, build_image);
    command.options = {
        {"--tag", 't', "REFERENCE", "Name for the image: NAME or NAME:TAG.", true},
        {"--file", 'f', "PATH", "The Dockerfile (default: CONTEXT/Dockerfile)."},
        {"--build-arg", 0, "NAME=VALUE",
         "Value of an ARG; NAME alone takes it from the\nenvironment.", true},
        {"--target", 0, "STAGE", "Build this stage (default: the last one)."},
        {"--no-cache", 0, "", "Do every step again."},
        {"--quiet", 'q', "", "Print the image's digest only."},
        {"--cpu", 0, "CPUS", "Processors for a step: 1, 0.5 or 500m (default 1)."},
        {"--memory", 0, "SIZE", "Memory for a step: 512Mi, 2Gi (default 2Gi)."},
    };
    command.details =
        "Every RUN and COPY is done in a sandbox of its own on the server and kept as an image\n"
        "build-cache/…, from which a later build takes it when nothing before it has changed.\n"
        "Nothing else is left behind, also when the build fails or is interrupted.\n"
        "\n"
        "Known are ADD (files and archives, no addresses), ARG, CMD, COPY (--from, --chown,\n"
        "--chmod), ENTRYPOINT, ENV, EXPOSE, FROM … AS, LABEL, RUN (also with here-documents),\n"
        "SHELL, USER and WORKDIR; all else is refused by name. A .dockerignore is honoured. RUN\n"
        "output goes to standard error.\n"
        "What was built is used like any other image: run -i app.";
    command.examples = {
        {"image build -t app .", "the Dockerfile of this directory"},
        {"image build -t app:2 -f docker/Dockerfile --build-arg VERSION=2 .",
         "another Dockerfile, with an argument"},
        {"image build --target test --no-cache .", "one stage, every step anew"},
    };
    table.commands.push_back(std::move(command));
}

}  // namespace opensandbox::cli
