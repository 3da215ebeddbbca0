#include "agent/files/replacement_file.hpp"
#include "agent/ground/clone3_filter.hpp"
#include "agent/process/spawn.hpp"
#include "agent/role/role.hpp"
#include "agent/session/shell_state.hpp"
#include "agent/trust/egress_certificate.hpp"
#include "base/log.hpp"
#include "base/unique_fd.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <optional>
#include <signal.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::chrono::seconds kCertificateWait{300};
/// Says that the pre-script was sourced into this environment.
constexpr const char* kSourced = "_OPENSANDBOX_PRE_SCRIPT_SOURCED";

/// The first of these that is there as a program.
std::optional<std::string> find_program(std::string_view name, const Environment& environment) {
    std::vector<std::string> places{std::string(name)};
    if (name.find('/') == std::string_view::npos) {
        places = search_path(name, environment.get("PATH"));
    }
    auto at = std::ranges::find_if(
        places, [](const std::string& path) { return ::access(path.c_str(), X_OK) == 0; });
    return at == places.end() ? std::nullopt : std::optional<std::string>(*at);
}

Result<std::string> bootstrap_shell(const Environment& environment) {
    auto chosen = environment.get("BOOTSTRAP_SHELL");
    if (chosen && !chosen->empty()) {
        if (auto path = find_program(*chosen, environment)) return *path;
        return Error(ErrorCode::not_found,
                     "BOOTSTRAP_SHELL: " + std::string(*chosen) + " is not there");
    }
    for (const char* name : {"bash", "sh"}) {
        if (auto path = find_program(name, environment)) return *path;
    }
    return Error(ErrorCode::not_found, "there is neither bash nor sh to run the command with");
}

std::string own_program() {
    std::array<char, PATH_MAX> path{};
    ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
    return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : std::string();
}

/// Blocks the signals that end a wait, so that process 1 hears them; unblocks them when destroyed.
class EndingSignals {
  public:
    EndingSignals() {
        ::sigemptyset(&ending_);
        ::sigaddset(&ending_, SIGTERM);
        ::sigaddset(&ending_, SIGINT);
        ::sigprocmask(SIG_BLOCK, &ending_, &former_);
    }
    EndingSignals(const EndingSignals&) = delete;
    EndingSignals& operator=(const EndingSignals&) = delete;
    ~EndingSignals() { ::sigprocmask(SIG_SETMASK, &former_, nullptr); }

  private:
    sigset_t ending_{};
    sigset_t former_{};
};

/// Does not return when a shell took over.
void source_pre_script(const Environment& environment, const std::vector<std::string>& arguments) {
    auto command = pre_script_command(environment, own_program(), arguments);
    if (!command) {
        log::warn("the pre-script is left out", {{"error", command.error().message()}});
        return;
    }
    if (command->empty()) return;
    Environment marked = environment;
    marked.set(kSourced, "1");
    std::vector<std::string> entries = marked.entries();
    auto pointers = [](std::vector<std::string>& texts) {
        std::vector<char*> out;
        for (std::string& text : texts)
            out.push_back(text.data());
        out.push_back(nullptr);
        return out;
    };
    std::vector<char*> argument_list = pointers(*command);
    std::vector<char*> environment_list = pointers(entries);
    ::execve(argument_list.front(), argument_list.data(), environment_list.data());
    log::warn("the pre-script is left out", {{"error", std::strerror(errno)}});
}

}  // namespace

void prepare_bootstrap(Environment& environment, const std::string& root,
                       std::chrono::milliseconds wait) {
    EgressCertificate certificate(root);
    bool trusted = environment.get("NODE_EXTRA_CA_CERTS") == certificate.certificate();
    if (EgressCertificate::wanted(environment) && !trusted) {
        EndingSignals blocked;
        if (certificate.wait(wait)) {
            certificate.trust(environment);
        } else {
            log::warn("the egress certificate did not come", {{"path", certificate.certificate()}});
        }
    }
    if (environment.get("EXECD_ENVS").value_or("").empty()) {
        environment.set("EXECD_ENVS", root + "/opt/opensandbox/.env");
    }
    std::string file(*environment.get("EXECD_ENVS"));
    std::size_t slash = file.find_last_of('/');
    if (slash != std::string::npos && slash > 0) (void)make_directories(file.substr(0, slash));
    UniqueFd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
}

Result<std::vector<std::string>> bootstrap_command(const std::vector<std::string>& arguments,
                                                   const Environment& environment) {
    std::optional<std::string> text;
    if (auto given = environment.get("BOOTSTRAP_CMD"); given && !given->empty()) {
        text = *given;
    } else if (!arguments.empty() && arguments.front() == "-c") {
        text.emplace();
        for (std::size_t i = 1; i < arguments.size(); ++i)
            *text += (i == 1 ? "" : " ") + arguments[i];
    } else if (!arguments.empty()) {
        return arguments;
    }
    Result<std::string> shell = bootstrap_shell(environment);
    if (!shell) return shell.error();
    std::vector<std::string> command{*shell};
    if (text) command.insert(command.end(), {"-c", *text});
    return command;
}

std::vector<std::string> bootstrap_flags(const Environment& environment) {
    std::vector<std::string> words;
    std::string_view rest = environment.get("EXECD").value_or("");
    constexpr std::string_view kBlank = " \t\n";
    while (true) {
        std::size_t begin = rest.find_first_not_of(kBlank);
        if (begin == std::string_view::npos) break;
        std::size_t end = std::min(rest.find_first_of(kBlank, begin), rest.size());
        words.emplace_back(rest.substr(begin, end - begin));
        rest.remove_prefix(end);
    }
    if (!words.empty()) words.erase(words.begin());
    return words;
}

Result<std::vector<std::string>> pre_script_command(const Environment& environment,
                                                    const std::string& program,
                                                    const std::vector<std::string>& arguments) {
    std::string script(environment.get("EXECD_BOOTSTRAP_PRE_SCRIPT").value_or(""));
    if (script.empty()) return std::vector<std::string>();
    // Without a slash a shell would search PATH.
    if (script.find('/') == std::string::npos) script.insert(0, "./");
    if (::access(script.c_str(), R_OK) != 0) return Error::from_errno(errno, "read " + script);
    if (program.empty()) return Error(ErrorCode::not_found, "/proc does not name this program");
    Result<std::string> shell = bootstrap_shell(environment);
    if (!shell) return shell.error();
    // The program stands outside of the arguments: a script may change those, as it always could.
    std::string text = ". \"$0\"; exec " + quote_for_shell(program) + " bootstrap \"$@\"";
    std::vector<std::string> command{*shell, "-c", std::move(text), script};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
}

int bootstrap_main(int argc, char** argv) {
    if (Status applied = apply_clone3_compat(argv); !applied) {
        std::cerr << applied.error().message() << "\n";
        return 1;
    }
    std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    Environment environment = current_environment();
    if (environment.get(kSourced)) {
        environment.erase(kSourced);
        // The file of this program may itself be named like the role.
        if (argv[0] != std::string_view("bootstrap") && !arguments.empty() &&
            arguments.front() == "bootstrap") {
            arguments.erase(arguments.begin());
        }
    } else {
        prepare_bootstrap(environment, "", kCertificateWait);
        source_pre_script(environment, arguments);
    }
    Result<std::vector<std::string>> command = bootstrap_command(arguments, environment);
    if (!command) {
        std::cerr << command.error().message() << "\n";
        return 1;
    }
    std::vector<std::string> flags = bootstrap_flags(environment);
    flags.insert(flags.end(), {"-init", "--"});
    flags.insert(flags.end(), command->begin(), command->end());
    return start(flags, environment, argc, argv);
}

}  // namespace opensandbox::agent
