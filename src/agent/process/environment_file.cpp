#include "agent/process/environment_file.hpp"

#include "base/log.hpp"
#include "base/unique_fd.hpp"

#include <sys/stat.h>

#include <fcntl.h>
#include <optional>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxEnvironmentFile = std::size_t{1} << 20;
constexpr std::string_view kBlank = " \t\r\v\f";

std::string_view trim(std::string_view text) {
    std::size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

/// A quoted value and where the line after it begins.
struct Quoted {
    std::string value;
    std::size_t next = 0;
};

/// The end of the line at `at` when nothing but blanks is left of it; empty otherwise.
std::optional<std::size_t> blank_to_line_end(std::string_view text, std::size_t at) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    if (!trim(text.substr(at, end - at)).empty()) return std::nullopt;
    return std::min(end + 1, text.size());
}

std::optional<Quoted> read_single_quoted(std::string_view text, std::size_t at) {
    std::size_t close = text.find('\'', at);
    if (close == std::string_view::npos) return std::nullopt;
    auto next = blank_to_line_end(text, close + 1);
    if (!next) return std::nullopt;
    return Quoted{std::string(text.substr(at, close - at)), *next};
}

std::optional<Quoted> read_double_quoted(std::string_view text, std::size_t at,
                                         const VariableLookup& lookup) {
    std::string value;
    std::string plain;  // expanded on its own, so that an escape never makes a reference
    auto flush = [&] {
        value += expand_variables(plain, lookup);
        plain.clear();
    };
    for (; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] != '\\' || at + 1 == text.size()) {
            plain += text[at];
            continue;
        }
        static constexpr std::string_view kLetters = "nrt\\\"";
        static constexpr std::string_view kMeaning = "\n\r\t\\\"";
        std::size_t which = kLetters.find(text[at + 1]);
        if (which == std::string_view::npos) {
            plain += text[at];
            continue;
        }
        flush();
        value += kMeaning[which];
        ++at;
    }
    if (at == text.size()) return std::nullopt;
    auto next = blank_to_line_end(text, at + 1);
    if (!next) return std::nullopt;
    flush();
    return Quoted{std::move(value), *next};
}

}  // namespace

Environment::Pairs parse_environment_file(std::string_view text, const VariableLookup& lookup) {
    Environment::Pairs pairs;
    std::size_t at = 0;
    while (at < text.size()) {
        std::size_t end = std::min(text.find('\n', at), text.size());
        std::size_t next = std::min(end + 1, text.size());
        std::string_view line = trim(text.substr(at, end - at));
        at = next;
        if (line.empty() || line.front() == '#') continue;
        std::size_t equals = line.find('=');
        if (equals == std::string_view::npos || equals == 0) continue;
        std::string name(line.substr(0, equals));
        if (line.find('\0') != std::string_view::npos) continue;
        std::string_view raw = line.substr(equals + 1);
        std::optional<Quoted> quoted;
        if (!raw.empty() && (raw.front() == '\'' || raw.front() == '"')) {
            auto inside = static_cast<std::size_t>(raw.data() - text.data()) + 1;
            quoted = raw.front() == '\'' ? read_single_quoted(text, inside)
                                         : read_double_quoted(text, inside, lookup);
        }
        if (quoted) {
            at = quoted->next;
            if (quoted->value.find('\0') != std::string::npos) continue;
            pairs.emplace_back(std::move(name), std::move(quoted->value));
        } else {
            pairs.emplace_back(std::move(name), expand_variables(raw, lookup));
        }
    }
    return pairs;
}

Environment::Pairs read_environment_file(const Environment& environment) {
    auto named = environment.get("EXECD_ENVS");
    if (!named || named->empty()) return {};
    auto lookup = [&](std::string_view name) -> std::optional<std::string> {
        auto value = environment.get(name);
        if (!value) return std::nullopt;
        return std::string(*value);
    };
    std::string path = expand_variables(*named, lookup);
    if (path == "~" || path.starts_with("~/")) {
        path.replace(0, 1, environment.get("HOME").value_or("/root"));
    }
    // Not to be blocked by a pipe that someone put there.
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return {};
    struct stat info{};
    if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
    if (static_cast<std::size_t>(info.st_size) > kMaxEnvironmentFile) {
        log::warn("environment file is larger than 1 MiB, ignored", {{"path", path}});
        return {};
    }
    std::string text(static_cast<std::size_t>(info.st_size), '\0');
    ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return parse_environment_file(text, lookup);
}

}  // namespace opensandbox::agent
