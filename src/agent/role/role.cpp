#include "agent/role/role.hpp"

#include "agent/ground/clone3_filter.hpp"
#include "agent/ground/log_file.hpp"
#include "agent/role/flags.hpp"
#include "base/log.hpp"
#include "base/program_text.hpp"
#include "version.hpp"

#include <sys/mman.h>

#include <cstring>
#include <iostream>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::chrono::seconds kWaitForCertificate{300};

/// The environment as pairs; entries without `=` are left out.
std::vector<std::pair<std::string, std::string>> environment_pairs() {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (char** entry = environ; entry && *entry; ++entry) {
        std::string_view text = *entry;
        std::size_t equals = text.find('=');
        if (equals == std::string_view::npos || equals == 0) continue;
        pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return pairs;
}

/// Code that only the start needed goes out of this process's memory; what is used again comes back
/// from the page cache. Half of an idle agent would be such code.
void release_startup_code() {
    const std::span<const char> text = program_text();
    if (!text.empty()) ::madvise(const_cast<char*>(text.data()), text.size(), MADV_DONTNEED);
}

void blank(char* text) {
    std::memset(text, 0, std::strlen(text));
}

/// The kernel shows a process's first arguments and environment to others: the token is wiped from
/// both once it was read.
void hide_token(int argc, char** argv) {
    constexpr std::string_view kVariable = "EXECD_ACCESS_TOKEN=";
    for (char** entry = environ; entry && *entry; ++entry) {
        if (std::string_view(*entry).starts_with(kVariable)) blank(*entry + kVariable.size());
    }
    for (int i = 1; i < argc; ++i) {
        std::string_view text = argv[i];
        if (text == "--") break;
        if (!text.starts_with("-access-token") && !text.starts_with("--access-token")) continue;
        std::size_t equals = text.find('=');
        if (equals != std::string_view::npos) {
            blank(argv[i] + equals + 1);
        } else if (i + 1 < argc) {
            blank(argv[++i]);
        }
    }
}

log::Level level_of(int number) {
    if (number <= 3) return log::Level::error;
    if (number == 4) return log::Level::warn;
    return number <= 6 ? log::Level::info : log::Level::debug;
}

void print_banner() {
    const std::string rule(53, '=');
    std::string text = rule + "\n OpenSandbox Execd\n" + rule + "\n  Version: ";
    text += kVersion;
    text += '\n' + rule + '\n';
    [[maybe_unused]] ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
}

std::string current_directory() {
    char path[4096];
    return ::getcwd(path, sizeof path) ? path : "/";
}

}  // namespace

Environment current_environment() {
    return Environment(environment_pairs());
}

int start(const std::vector<std::string>& arguments, const Environment& environment, int argc,
          char** argv) {
    Result<Invocation> invocation = parse_invocation(arguments, environment.pairs());
    if (!invocation) {
        std::cerr << invocation.error().message() << "\n" << usage();
        return 2;
    }
    if (invocation->help) {
        std::cout << usage();
        return 0;
    }
    hide_token(argc, argv);
    AgentOptions& options = invocation->options;
    int log_descriptor = STDOUT_FILENO;
    Status logging;
    if (!invocation->log_file.empty()) {
        Result<std::shared_ptr<LogFile>> file = LogFile::open(invocation->log_file);
        if (file) {
            options.log_file = *file;
            log_descriptor = options.log_file->descriptor();
        } else {
            logging = file.error();
        }
    }
    log::configure(level_of(invocation->log_level), log::Format::json, log_descriptor);
    print_banner();
    if (!logging) log::warn("logging to standard output", {{"error", logging.error().message()}});
    options.inherit_output = true;
    options.working_directory = current_directory();
    options.uid = ::geteuid();
    options.gid = ::getegid();
    std::uint16_t port = options.port;
    if (options.access_token.empty()) {
        log::warn("no access token is set: whoever reaches the port may run commands");
    }
    options.on_ready = [port](const Status& status) {
        if (!status) return;
        log::info("listening", {{"port", port}});
        release_startup_code();
    };
    return run(std::move(options));
}

int main(int argc, char** argv) {
    // The executable may be there under this role's name only.
    if (argc > 1 && std::string_view(argv[1]) == "bootstrap") {
        return bootstrap_main(argc - 1, argv + 1);
    }
    if (Status applied = apply_clone3_compat(argv); !applied) {
        std::cerr << applied.error().message() << "\n";
        return 1;
    }
    std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    Environment environment = current_environment();
    auto asked = parse_invocation(arguments, environment.pairs());
    if (asked && asked->options.init && !asked->help) {
        prepare_bootstrap(environment, "", kWaitForCertificate);
        bool text = !environment.get("BOOTSTRAP_CMD").value_or("").empty();
        if (asked->options.entrypoint.empty() && text) {
            auto command = bootstrap_command({}, environment);
            if (!command) {
                std::cerr << command.error().message() << "\n";
                return 1;
            }
            if (arguments.empty() || arguments.back() != "--") arguments.emplace_back("--");
            arguments.insert(arguments.end(), command->begin(), command->end());
        }
    }
    return start(arguments, environment, argc, argv);
}

}  // namespace opensandbox::agent
