#include "agent/isolated/config.hpp"

#include "agent/isolated/request.hpp"
#include "base/toml_text.hpp"
#include "base/unique_fd.hpp"

#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <iterator>
#include <toml++/toml.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxFile = std::size_t{1} << 20;

/// In the order of their numbers.
constexpr std::array<std::string_view, 41> kCapabilities{"CHOWN",
                                                         "DAC_OVERRIDE",
                                                         "DAC_READ_SEARCH",
                                                         "FOWNER",
                                                         "FSETID",
                                                         "KILL",
                                                         "SETGID",
                                                         "SETUID",
                                                         "SETPCAP",
                                                         "LINUX_IMMUTABLE",
                                                         "NET_BIND_SERVICE",
                                                         "NET_BROADCAST",
                                                         "NET_ADMIN",
                                                         "NET_RAW",
                                                         "IPC_LOCK",
                                                         "IPC_OWNER",
                                                         "SYS_MODULE",
                                                         "SYS_RAWIO",
                                                         "SYS_CHROOT",
                                                         "SYS_PTRACE",
                                                         "SYS_PACCT",
                                                         "SYS_ADMIN",
                                                         "SYS_BOOT",
                                                         "SYS_NICE",
                                                         "SYS_RESOURCE",
                                                         "SYS_TIME",
                                                         "SYS_TTY_CONFIG",
                                                         "MKNOD",
                                                         "LEASE",
                                                         "AUDIT_WRITE",
                                                         "AUDIT_CONTROL",
                                                         "SETFCAP",
                                                         "MAC_OVERRIDE",
                                                         "MAC_ADMIN",
                                                         "SYSLOG",
                                                         "WAKE_ALARM",
                                                         "BLOCK_SUSPEND",
                                                         "AUDIT_READ",
                                                         "PERFMON",
                                                         "BPF",
                                                         "CHECKPOINT_RESTORE"};

/// With any of these the walls of a session can be taken down from inside.
bool breaks_isolation(int capability) {
    constexpr std::array kForbidden{
        CAP_SYS_ADMIN,          CAP_SYS_PTRACE, CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT,
        CAP_DAC_READ_SEARCH,    CAP_BPF,        CAP_PERFMON,    CAP_MAC_ADMIN, CAP_MAC_OVERRIDE,
        CAP_CHECKPOINT_RESTORE, CAP_SYS_TIME,   CAP_NET_ADMIN};
    return std::ranges::find(kForbidden, capability) != kForbidden.end();
}

Result<std::vector<std::string>> strings(const toml::table& root, std::string_view path) {
    std::vector<std::string> out;
    auto node = root.at_path(path);
    if (!node) return out;
    const toml::array* items = node.as_array();
    if (!items) return invalid(std::string(path) + ": must be an array of strings");
    for (const toml::node& item : *items) {
        auto text = item.value<std::string>();
        if (!text || !item.is_string()) {
            return invalid(std::string(path) + ": must be an array of strings");
        }
        out.push_back(std::move(*text));
    }
    return out;
}

Status take_bool(const toml::table& root, std::string_view path, bool& into) {
    auto node = root.at_path(path);
    if (!node) return {};
    if (!node.is_boolean()) return invalid(std::string(path) + ": must be true or false");
    into = *node.value<bool>();
    return {};
}

Status take_uppers(const toml::table& root, IsolationConfig& config) {
    if (auto node = root.at_path("upper_root")) {
        auto text = node.value<std::string>();
        if (!node.is_string() || !is_clean_path(*text) || *text == "/") {
            return invalid("upper_root: must be an absolute, clean path");
        }
        config.upper_root = std::move(*text);
    }
    if (auto node = root.at_path("upper_max_bytes")) {
        auto number = node.value<std::int64_t>();
        if (!node.is_integer() || *number <= 0) {
            return invalid("upper_max_bytes: must be a positive integer");
        }
        config.upper_max_bytes = static_cast<std::uint64_t>(*number);
    }
    if (root.at_path("allowed_writable")) {
        auto paths = strings(root, "allowed_writable");
        if (!paths) return paths.error();
        if (!std::ranges::all_of(*paths, is_clean_path)) {
            return invalid("allowed_writable: must hold absolute, clean paths");
        }
        config.allowed_writable = std::move(*paths);
    }
    return {};
}

Status take_hardening(const toml::table& root, IsolationConfig& config) {
    if (Status s = take_bool(root, "hardening.enabled", config.hardening); !s) return s;
    if (Status s = take_bool(root, "landlock.enabled", config.landlock); !s) return s;
    auto denied = strings(root, "seccomp.deny");
    if (!denied) return denied.error();
    config.denied_calls = std::move(*denied);
    auto kept = strings(root, "hardening.keep_capabilities");
    if (!kept) return kept.error();
    for (const std::string& name : *kept) {
        Result<int> number = capability_number(name);
        if (!number) return number.error().within("hardening.keep_capabilities");
        if (breaks_isolation(*number)) {
            return invalid("hardening.keep_capabilities: " + name +
                           " would let a run leave its isolation");
        }
        config.kept_capabilities |= std::uint64_t{1} << *number;
    }
    config.keep_capabilities = std::move(*kept);
    return {};
}

}  // namespace

Result<int> capability_number(std::string_view name) {
    std::string upper(name);
    for (char& c : upper) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    if (upper.starts_with("CAP_")) upper.erase(0, 4);
    auto at = std::ranges::find(kCapabilities, upper);
    if (at == kCapabilities.end()) return invalid("no such capability: " + std::string(name));
    return static_cast<int>(std::distance(kCapabilities.begin(), at));
}

Result<IsolationConfig> IsolationConfig::parse(std::string_view text, std::string_view source) {
    if (Status checked = check_toml_text(text, source); !checked) return checked.error();
    try {
        toml::table root = toml::parse(text, source);
        IsolationConfig config;
        for (auto take : {take_uppers, take_hardening}) {
            if (Status done = take(root, config); !done) {
                return done.error().within(std::string(source));
            }
        }
        return config;
    } catch (const toml::parse_error& problem) {
        return invalid(std::string(source) + ":" + std::to_string(problem.source().begin.line) +
                       ": " + std::string(problem.description()));
    }
}

Result<IsolationConfig> IsolationConfig::load(const std::string& path) {
    if (path.empty()) return IsolationConfig();
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return Error::from_errno(errno, "isolation configuration " + path);
    std::string text(kMaxFile + 1, '\0');
    std::size_t have = 0;
    while (have < text.size()) {
        ssize_t got = ::read(file.get(), text.data() + have, text.size() - have);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Error::from_errno(errno, "isolation configuration " + path);
        if (got == 0) break;
        have += static_cast<std::size_t>(got);
    }
    if (have > kMaxFile) return invalid(path + " is larger than 1 MiB");
    text.resize(have);
    return parse(text, path);
}

}  // namespace opensandbox::agent
