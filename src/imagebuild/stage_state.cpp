#include "imagebuild/stage_state.hpp"

#include "imagebuild/path_pattern.hpp"
#include "imagebuild/words.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace opensandbox::imagebuild {
namespace {

constexpr std::array<std::string_view, 10> kProxies{
    "ALL_PROXY", "FTP_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY",
    "all_proxy", "ftp_proxy", "https_proxy", "http_proxy", "no_proxy",
};

/// Most bytes of all variables, and of all labels: no image may say more of itself.
constexpr std::size_t kMostText = std::size_t{1} << 20;
constexpr std::size_t kMostPorts = 1000;

Error refused_state(std::string rule) {
    return {ErrorCode::invalid_argument, std::move(rule)};
}

/// Sets a text unless all of them become too much.
template <class Map>
Status put(Map& texts, const std::string& name, std::string value, std::string_view what) {
    std::size_t size = name.size() + value.size();
    for (const auto& [known, text] : texts)
        size += known == name ? 0 : known.size() + text.size();
    if (size > kMostText) {
        return refused_state("the " + std::string(what) + " have more than 1 MiB together");
    }
    texts[name] = std::move(value);
    return {};
}

/// "80", "80/tcp", "8000-8003/udp" as single ports.
Status add_ports(std::string_view text, std::vector<std::string>& out) {
    auto broken = [&] {
        return refused_state("'" + std::string(text) +
                             "': must be PORT or FIRST-LAST, with /tcp or /udp");
    };
    const auto slash = text.find('/');
    std::string protocol = "tcp";
    if (slash != std::string_view::npos) protocol = to_lower(text.substr(slash + 1));
    if (protocol != "tcp" && protocol != "udp" && protocol != "sctp") return broken();
    const std::string_view range = text.substr(0, slash);
    const auto dash = range.find('-');
    auto number = [](std::string_view digits) -> unsigned {
        unsigned value = 0;
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), value);
        const bool whole = error == std::errc() && end == digits.data() + digits.size();
        return whole && value <= 65535 ? value : 0;
    };
    const unsigned first = number(range.substr(0, dash));
    const unsigned last = dash == std::string_view::npos ? first : number(range.substr(dash + 1));
    if (first == 0 || last < first) return broken();
    if (last - first >= kMostPorts) return refused_state("there are more than 1000 ports");
    for (unsigned port = first; port <= last; ++port)
        out.push_back(std::to_string(port) + "/" + protocol);
    return {};
}

/// "755" or "0755".
Result<std::uint32_t> mode_of(const std::string& text) {
    std::uint32_t mode = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
    if (text.empty() || error != std::errc() || end != text.data() + text.size() || mode > 07777) {
        return refused_state("--chmod=" + text + ": must be octal digits, such as 755");
    }
    return mode;
}

/// "user[:group]". A group that is not named is the user's own number or name.
Status split_owner(const std::string& text, std::string& owner, std::string& group) {
    const auto colon = text.find(':');
    owner = text.substr(0, colon);
    if (colon != std::string::npos) group = text.substr(colon + 1);
    if (owner.empty() || (colon != std::string::npos && group.empty())) {
        return refused_state("--chown=" + text + ": must be USER or USER:GROUP");
    }
    return {};
}

bool is_remote(std::string_view source) {
    for (std::string_view scheme : {"http://", "https://", "ftp://", "git://", "ssh://", "git@"}) {
        if (source.starts_with(scheme)) return true;
    }
    return false;
}

bool names_directory(std::string_view path) {
    return path.ends_with('/') || path == "." || path == ".." || path.ends_with("/.") ||
           path.ends_with("/..");
}

}  // namespace

bool is_proxy_argument(std::string_view name) {
    return std::ranges::find(kProxies, name) != kProxies.end();
}

StageState::StageState(ImageSettings settings, const Variables& globals,
                       const Variables& build_arguments, char escape)
    : settings_(std::move(settings)),
      globals_(globals),
      build_arguments_(build_arguments),
      escape_(escape) {}

/// ENV goes before ARG of the same name.
Variables StageState::variables() const {
    Variables all = arguments_;
    for (const auto& [name, value] : settings_.environment)
        all[name] = value;
    return all;
}

Result<std::string> StageState::expanded(std::string_view word) const {
    return expand(word, variables(), escape_);
}

std::string StageState::absolute(const std::string& path) const {
    if (path.starts_with('/')) return path;
    const std::string& base = settings_.working_directory;
    if (base.empty() || base == "/") return "/" + path;
    return base + "/" + path;
}

Status StageState::set_environment(const Instruction& instruction) {
    // All of one line see the variables before it.
    const Variables before = variables();
    for (const auto& [name, value] : instruction.pairs) {
        auto key = expand(name, before, escape_);
        if (!key) return key.error();
        if (key->empty()) return refused_state("'" + name + "': the name is empty");
        auto text = expand(value.value_or(""), before, escape_);
        if (!text) return text.error();
        Status set = put(settings_.environment, *key, std::move(*text), "variables");
        if (!set) return set;
    }
    return {};
}

Status StageState::set_labels(const Instruction& instruction) {
    for (const auto& [name, value] : instruction.pairs) {
        auto key = expanded(name);
        if (!key) return key.error();
        if (key->empty()) return refused_state("'" + name + "': the name is empty");
        auto text = expanded(value.value_or(""));
        if (!text) return text.error();
        Status set = put(settings_.labels, *key, std::move(*text), "labels");
        if (!set) return set;
    }
    return {};
}

Status StageState::set_arguments(const Instruction& instruction) {
    for (const auto& [name, fallback] : instruction.pairs) {
        if (auto given = build_arguments_.find(name); given != build_arguments_.end()) {
            arguments_[name] = given->second;
            used_.push_back(name);
        } else if (fallback) {
            auto value = expanded(*fallback);
            if (!value) return value.error();
            if (Status set = put(arguments_, name, std::move(*value), "arguments"); !set) {
                return set;
            }
        } else if (auto global = globals_.find(name); global != globals_.end()) {
            arguments_[name] = global->second;
        }
    }
    return {};
}

Status StageState::set_user(const Instruction& instruction) {
    auto user = expanded(instruction.words.front());
    if (!user) return user.error();
    if (user->empty()) return refused_state("'" + instruction.words.front() + "' is empty");
    settings_.user = std::move(*user);
    return {};
}

Status StageState::expose(const Instruction& instruction) {
    std::vector<std::string>& ports = settings_.exposed_ports;
    for (const std::string& word : instruction.words) {
        auto text = expanded(word);
        if (!text) return text.error();
        for (const std::string& port : split_words(*text, escape_)) {
            if (Status added = add_ports(port, ports); !added) return added;
        }
    }
    std::ranges::sort(ports);
    ports.erase(std::ranges::unique(ports).begin(), ports.end());
    return ports.size() <= kMostPorts ? Status() : refused_state("there are more than 1000 ports");
}

Result<Step> StageState::enter_directory(const Instruction& instruction) {
    auto path = expanded(instruction.words.front());
    if (!path) return path.error();
    if (path->empty()) return refused_state("'" + instruction.words.front() + "' is empty");
    settings_.working_directory = clean_absolute_path(absolute(*path));
    if (settings_.working_directory == "/") return Step();
    DirectoryStep step;
    step.path = settings_.working_directory;
    const auto colon = settings_.user.find(':');
    step.owner = settings_.user.substr(0, colon);
    if (colon != std::string::npos) step.group = settings_.user.substr(colon + 1);
    return Step(std::move(step));
}

Result<Step> StageState::copy(const Instruction& instruction) {
    CopyStep step;
    std::vector<std::string> words;
    for (const std::string& word : instruction.words) {
        auto text = expanded(word);
        if (!text) return text.error();
        if (text->empty()) return refused_state("'" + word + "' is empty");
        words.push_back(std::move(*text));
    }
    step.unpack = instruction.verb == Verb::add;
    step.from = instruction.from;
    const std::string destination = std::move(words.back());
    words.pop_back();
    for (const std::string& source : words) {
        if (is_remote(source)) {
            return refused_state(
                "'" + source +
                "': addresses are not fetched; use RUN with curl or wget, or COPY a file");
        }
    }
    step.into_directory = names_directory(destination);
    if (words.size() > 1 && !step.into_directory) {
        return refused_state("with several sources the destination must end with /: '" +
                             destination + "'");
    }
    step.sources = std::move(words);
    step.destination = absolute(destination);
    if (instruction.chown) {
        auto owner = expanded(*instruction.chown);
        if (!owner) return owner.error();
        if (Status split = split_owner(*owner, step.owner, step.group); !split) {
            return split.error();
        }
    }
    if (instruction.chmod) {
        auto text = expanded(*instruction.chmod);
        if (!text) return text.error();
        auto mode = mode_of(*text);
        if (!mode) return mode.error();
        step.mode = *mode;
    }
    return Step(std::move(step));
}

std::vector<std::string> StageState::in_shell(const Instruction& instruction) const {
    if (instruction.exec_form) return instruction.words;
    std::vector<std::string> all = shell_;
    all.push_back(instruction.words.front());
    return all;
}

Step StageState::run(const Instruction& instruction) const {
    RunStep step;
    step.arguments = in_shell(instruction);
    step.user = settings_.user;
    step.directory = settings_.working_directory.empty() ? "/" : settings_.working_directory;
    for (const auto& [name, value] : variables()) {
        // Declared or not, a proxy is nothing that the result may depend on.
        const bool proxy = is_proxy_argument(name) && !settings_.environment.contains(name);
        (proxy ? step.proxies : step.environment)[name] = value;
    }
    for (const auto& [name, value] : build_arguments_) {
        if (is_proxy_argument(name) && !step.environment.contains(name)) step.proxies[name] = value;
    }
    return step;
}

Result<Step> StageState::apply(const Instruction& instruction) {
    Status done;
    switch (instruction.verb) {
        case Verb::run: return run(instruction);
        case Verb::add:
        case Verb::copy: return copy(instruction);
        case Verb::workdir: return enter_directory(instruction);
        case Verb::env: done = set_environment(instruction); break;
        case Verb::label: done = set_labels(instruction); break;
        case Verb::arg: done = set_arguments(instruction); break;
        case Verb::user: done = set_user(instruction); break;
        case Verb::expose: done = expose(instruction); break;
        case Verb::shell: shell_ = instruction.words; break;
        case Verb::cmd:
            settings_.cmd = in_shell(instruction);
            cmd_given_ = true;
            break;
        case Verb::entrypoint:
            settings_.entrypoint = in_shell(instruction);
            // What the image below passes to its own entrypoint means nothing to this one.
            if (!cmd_given_) settings_.cmd.clear();
            break;
    }
    if (!done) return done.error();
    return Step();
}

}  // namespace opensandbox::imagebuild
