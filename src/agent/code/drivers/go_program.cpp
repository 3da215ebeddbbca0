#include "agent/code/drivers/go_cell.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace opensandbox::agent {
namespace {

using Kind = GoPiece::Kind;

/// Packages that need no import declaration.
constexpr std::array<std::string_view, 30> kKnown = {
    "bufio",         "bytes",         "context",     "encoding/base64",
    "encoding/json", "errors",        "fmt",         "io",
    "log",           "maps",          "math",        "math/big",
    "math/rand",     "net/http",      "net/url",     "os",
    "os/exec",       "path/filepath", "reflect",     "regexp",
    "runtime",       "slices",        "sort",        "strconv",
    "strings",       "sync",          "sync/atomic", "time",
    "unicode",       "unicode/utf8",
};

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Whether the text has `name.` as a word of its own.
bool uses(std::string_view text, std::string_view name) {
    for (std::size_t at = text.find(name); at != std::string_view::npos;
         at = text.find(name, at + 1)) {
        bool begins = at == 0 || (!is_word(text[at - 1]) && text[at - 1] != '.');
        if (begins && text.substr(at + name.size()).starts_with('.')) return true;
    }
    return false;
}

/// The name by which a package path is used.
std::string_view package_name(std::string_view path) {
    std::size_t slash = path.rfind('/');
    std::string_view last = slash == std::string_view::npos ? path : path.substr(slash + 1);
    bool version = last.size() > 1 && last[0] == 'v' &&
                   std::ranges::all_of(last.substr(1), [](char c) { return c >= '0' && c <= '9'; });
    if (version && slash != std::string_view::npos) return package_name(path.substr(0, slash));
    return last.substr(0, last.find(".v"));
}

/// The name that an import declares; empty when it has to stay whatever is used.
std::string_view import_name(const GoPiece& import) {
    std::string_view text = import.text;
    std::size_t open = text.find_first_of("\"`");
    std::size_t close = text.find_last_of("\"`");
    if (open == std::string_view::npos || close <= open) return {};
    std::string_view alias = text.substr(6, open - 6);
    while (!alias.empty() && alias.front() == ' ')
        alias.remove_prefix(1);
    while (!alias.empty() && alias.back() == ' ')
        alias.remove_suffix(1);
    if (alias == "_" || alias == ".") return {};
    return alias.empty() ? package_name(text.substr(open + 1, close - open - 1)) : alias;
}

bool overlap(const GoPiece& a, const GoPiece& b) {
    return std::ranges::any_of(a.names, [&](const auto& name) {
        return std::ranges::find(b.names, name) != b.names.end();
    });
}

bool replaces(const GoPiece& later, const GoPiece& former) {
    if (later.kind != former.kind) return false;
    if (later.kind == Kind::import) return import_name(later) == import_name(former);
    return overlap(later, former);
}

/// A statement that may be an expression with a value.
bool may_have_value(const std::string& text) {
    for (std::string_view word :
         {"if",          "for",          "switch",     "select",     "go",
          "defer",       "return",       "goto",       "break",      "continue",
          "fallthrough", "panic",        "print",      "println",    "close",
          "delete",      "fmt.Print",    "fmt.Fprint", "fmt.Printf", "fmt.Println",
          "fmt.Fprintf", "fmt.Fprintln", "{"}) {
        if (!text.starts_with(word)) continue;
        if (word == "{" || text.size() == word.size() || !is_word(text[word.size()])) return false;
    }
    if (text.ends_with("++") || text.ends_with("--")) return false;
    int depth = 0;
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (quote != 0) {
            if (c == '\\' && quote != '`') ++i;
            if (c == quote) quote = 0;
            continue;
        }
        if (c == '"' || c == '\'' || c == '`') quote = c;
        if (c == '(' || c == '[' || c == '{') ++depth;
        if (c == ')' || c == ']' || c == '}') --depth;
        char before = i > 0 ? text[i - 1] : ' ';
        char after = i + 1 < text.size() ? text[i + 1] : ' ';
        bool compares = after == '=' || before == '=' || before == '!' ||
                        ((before == '<' || before == '>') && (i < 2 || text[i - 2] != before));
        if (depth == 0 && c == '=' && !compares) return false;
        if (depth == 0 && c == '<' && after == '-' && i > 0) return false;
    }
    return true;
}

void append(std::string& out, const GoPiece& piece) {
    out += "//line " + piece.file + ":" + std::to_string(piece.line) + "\n" + piece.text + "\n";
}

}  // namespace

GoProgram::Build GoProgram::build(std::string_view code, std::size_t cell, bool show) const {
    Build out;
    std::vector<GoPiece> own = split_go_cell(code);
    const std::string file = "cell_" + std::to_string(cell) + ".go";
    std::string body;
    std::string statements;
    bool has_main = false;
    for (const GoPiece& former : pieces_) {
        bool hidden =
            std::ranges::any_of(own, [&](const GoPiece& piece) { return replaces(piece, former); });
        if (!hidden) out.kept.push_back(former);
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
        GoPiece& piece = own[i];
        piece.file = file;
        if (piece.kind == Kind::entry) {
            has_main = has_main || piece.names.front() == "main";
            append(body, piece);
        } else if (piece.kind == Kind::statement) {
            bool last = i + 1 == own.size();
            if (show && last && may_have_value(piece.text)) {
                out.has_result = true;
                piece.text = "show_result(" + piece.text + ")";
            }
            append(statements, piece);
        } else if (piece.kind != Kind::package) {
            std::erase_if(out.kept, [&](const GoPiece& former) { return replaces(piece, former); });
            out.kept.push_back(piece);
        }
    }
    // With a main of its own, the cell's statements go before it.
    if (has_main) {
        body += "func init() {\n" + statements + "}\n";
    } else {
        body += "func main() {\n" + statements + "}\n";
    }
    for (const GoPiece& piece : out.kept) {
        if (piece.kind == Kind::declaration) append(body, piece);
    }
    out.source = "package main\n";
    std::vector<std::string_view> imported;
    for (const GoPiece& piece : out.kept) {
        if (piece.kind != Kind::import) continue;
        std::string_view name = import_name(piece);
        imported.push_back(name);
        if (name.empty() || uses(body, name)) append(out.source, piece);
    }
    for (std::string_view path : kKnown) {
        std::string_view name = package_name(path);
        bool declared = std::ranges::any_of(out.kept, [&](const GoPiece& piece) {
            return std::ranges::find(piece.names, name) != piece.names.end() &&
                   piece.kind == Kind::declaration;
        });
        if (declared || std::ranges::find(imported, name) != imported.end()) continue;
        if (uses(body, name)) out.source += "import \"" + std::string(path) + "\"\n";
    }
    out.source += body;
    return out;
}

void GoProgram::keep(const Build& build) {
    pieces_ = build.kept;
}

std::string_view go_result_source() {
    return R"(package main

import (
	"fmt"
	"os"
	"strconv"
)

func show_result(values ...interface{}) {
	text := ""
	for i, value := range values {
		if i > 0 {
			text += " "
		}
		if s, ok := value.(string); ok {
			text += strconv.Quote(s)
		} else {
			text += fmt.Sprintf("%+v", value)
		}
	}
	channel := os.NewFile(3, "channel")
	fmt.Fprintf(channel, "s%d\n%s", len(text), text)
}
)";
}

}  // namespace opensandbox::agent
