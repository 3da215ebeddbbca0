#include "imagebuild/dockerfile_lines.hpp"

#include "imagebuild/words.hpp"

#include <algorithm>
#include <cctype>

namespace opensandbox::imagebuild {
namespace {

/// The lines of a text without their ends (LF or CR LF).
class LineSource {
  public:
    explicit LineSource(std::string_view text) : rest_(text) {}

    [[nodiscard]] bool at_end() const { return rest_.empty(); }
    [[nodiscard]] std::size_t number() const { return number_; }
    std::string_view next() {
        ++number_;
        const auto end = rest_.find('\n');
        std::string_view line = rest_.substr(0, end);
        rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        return line;
    }
    [[nodiscard]] std::string_view peek() const {
        LineSource copy = *this;
        return copy.next();
    }

  private:
    std::string_view rest_;
    std::size_t number_ = 0;
};

bool is_comment(std::string_view line) {
    return trim(line).starts_with('#');
}

/// "# name=value" of the top of the file.
std::optional<std::pair<std::string, std::string>> directive_of(std::string_view line) {
    line = trim(line);
    if (!line.starts_with('#')) return std::nullopt;
    line = trim(line.substr(1));
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = trim(line.substr(0, equals));
    const std::string_view value = trim(line.substr(equals + 1));
    auto is_word = [](unsigned char c) { return std::isalnum(c) != 0; };
    if (name.empty() || value.empty() || !std::ranges::all_of(name, is_word)) return std::nullopt;
    return std::pair(to_lower(name), std::string(value));
}

/// Only the language of the usual frontend is spoken here; any of its versions is taken.
bool is_known_syntax(std::string_view image) {
    for (std::string_view prefix : {"docker.io/", "index.docker.io/"}) {
        if (image.starts_with(prefix)) image.remove_prefix(prefix.size());
    }
    const std::string_view name = image.substr(0, image.find_first_of(":@"));
    return name == "docker/dockerfile" || name == "docker/dockerfile-upstream";
}

Status read_directives(LineSource& source, DockerfileLines& out) {
    std::vector<std::string> seen;
    while (!source.at_end()) {
        auto directive = directive_of(source.peek());
        if (!directive) return {};
        const auto& [name, value] = *directive;
        if (name != "escape" && name != "syntax" && name != "check") return {};
        source.next();
        if (std::ranges::find(seen, name) != seen.end()) {
            return dockerfile_error(out.file, source.number(),
                                    "the directive '" + name + "' stands here twice");
        }
        seen.push_back(name);
        if (name == "escape") {
            if (value != "\\" && value != "`") {
                return dockerfile_error(out.file, source.number(),
                                        "escape: must be \\ or `, not '" + value + "'");
            }
            out.escape = value.front();
        } else if (name == "syntax" && !is_known_syntax(value)) {
            return dockerfile_error(
                out.file, source.number(),
                "syntax: '" + value + "' is not known here; docker/dockerfile:1 is");
        }
    }
    return {};
}

/// Whether the line goes on in the next one; the escape character is then cut off. Two of them are
/// an escaped one.
bool cut_continuation(std::string& line, char escape) {
    const auto last = line.find_last_not_of(" \t");
    if (last == std::string::npos || line[last] != escape) return false;
    if (last > 0 && line[last - 1] == escape) return false;
    line.resize(last);
    return true;
}

std::string without_leading_tabs(std::string_view line) {
    const auto first = line.find_first_not_of('\t');
    return std::string(first == std::string_view::npos ? std::string_view() : line.substr(first));
}

/// The words that begin here-documents, for the instructions that may have some.
std::vector<HereDocument> documents_of(const std::string& text, char escape) {
    std::vector<HereDocument> documents;
    const auto blank = text.find_first_of(" \t");
    if (blank == std::string::npos || text.find("<<") == std::string::npos) return documents;
    const std::string verb = to_lower(std::string_view(text).substr(0, blank));
    if (verb != "run" && verb != "copy" && verb != "add") return documents;
    for (const std::string& word : split_words(std::string_view(text).substr(blank), escape)) {
        if (auto document = here_document_of(word); !document.name.empty()) {
            documents.push_back(std::move(document));
        }
    }
    return documents;
}

Status read_document(LineSource& source, const DockerfileLines& out, const LogicalLine& line,
                     HereDocument& document) {
    while (!source.at_end()) {
        const std::string_view raw = source.next();
        const std::string plain =
            document.strip_tabs ? without_leading_tabs(raw) : std::string(raw);
        if (plain == document.name) return {};
        document.content += std::string(raw) + "\n";
    }
    return dockerfile_error(out.file, line.number,
                            "the here-document '" + document.name + "' does not end");
}

}  // namespace

Error dockerfile_error(std::string_view file, std::size_t line, std::string_view rule) {
    return {ErrorCode::invalid_argument,
            std::string(file) + ":" + std::to_string(line) + ": " + std::string(rule)};
}

HereDocument here_document_of(std::string_view word) {
    while (!word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) != 0) {
        word.remove_prefix(1);
    }
    HereDocument document;
    if (!word.starts_with("<<")) return document;
    word.remove_prefix(2);
    if (word.starts_with('-')) {
        document.strip_tabs = true;
        word.remove_prefix(1);
    }
    std::string name;
    for (char c : word) {
        if (c == '\'' || c == '"') continue;
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-' && c != '.') {
            return document;
        }
        name += c;
    }
    document.name = std::move(name);
    return document;
}

Result<DockerfileLines> split_dockerfile(std::string_view text, std::string file) {
    DockerfileLines out;
    out.file = std::move(file);
    if (text.size() > kLargestDockerfile) {
        return Error(ErrorCode::too_large, out.file + ": has more than 1 MiB");
    }
    if (text.find('\0') != std::string_view::npos) {
        return Error(ErrorCode::invalid_argument, out.file + ": is not a text: it holds NUL bytes");
    }
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    LineSource source(text);
    if (Status read = read_directives(source, out); !read) return read.error();
    while (!source.at_end()) {
        const std::string_view first = source.next();
        if (trim(first).empty() || is_comment(first)) continue;
        LogicalLine line;
        line.number = source.number();
        line.text = std::string(trim_left(first));
        bool goes_on = cut_continuation(line.text, out.escape);
        while (goes_on && !source.at_end()) {
            std::string more(source.next());
            if (trim(more).empty() || is_comment(more)) continue;
            goes_on = cut_continuation(more, out.escape);
            line.text += more;
        }
        line.text = std::string(trim(line.text));
        if (line.text.empty()) continue;
        line.documents = documents_of(line.text, out.escape);
        for (HereDocument& document : line.documents) {
            if (Status read = read_document(source, out, line, document); !read)
                return read.error();
        }
        out.lines.push_back(std::move(line));
    }
    return out;
}

}  // namespace opensandbox::imagebuild
