#include "agent/code/drivers/go_cell.hpp"

#include <algorithm>
#include <cctype>

namespace opensandbox::agent {
namespace {

bool is_go_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
}

/// Walks over Go tokens.
class Scanner {
  public:
    explicit Scanner(std::string_view text) : text_(text) {}

    /// Passes blanks, comments and line ends.
    void skip_blank() {
        while (at_ < text_.size()) {
            if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == ';') {
                ++at_;
            } else if (!skip_comment()) {
                return;
            }
        }
    }

    /// Passes one piece: to the line end or semicolon outside all brackets that ends it.
    std::string_view take_piece() {
        std::size_t begin = at_;
        std::size_t depth = 0;
        char last = 0;  // of the last token; 0 at a line that cannot end a piece
        while (at_ < text_.size()) {
            char c = text_[at_];
            if (c == '\n' && depth == 0 && ends_line(last)) break;
            if (c == ';' && depth == 0) break;
            if (skip_comment()) continue;
            if (c == '(' || c == '[' || c == '{') ++depth;
            if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
            if (c == '"' || c == '\'' || c == '`') {
                skip_literal(c);
                last = 'a';
                continue;
            }
            if (std::isspace(static_cast<unsigned char>(c)) == 0) {
                bool doubled = (c == '+' || c == '-') && last == c;
                last = doubled ? ')' : c;
            }
            ++at_;
        }
        return text_.substr(begin, at_ - begin);
    }

    [[nodiscard]] bool done() const { return at_ >= text_.size(); }
    [[nodiscard]] std::size_t line() const {
        return 1 + static_cast<std::size_t>(std::ranges::count(text_.substr(0, at_), '\n'));
    }

  private:
    static bool ends_line(char last) {
        return last != 0 && (is_go_word(last) || last == ')' || last == ']' || last == '}');
    }
    bool skip_comment() {
        if (text_.substr(at_, 2) == "//") {
            at_ = std::min(text_.find('\n', at_), text_.size());
            return true;
        }
        if (text_.substr(at_, 2) != "/*") return false;
        std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
        return true;
    }
    void skip_literal(char quote) {
        for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
            if (text_[at_] == '\\' && quote != '`') ++at_;
            if (at_ < text_.size() && text_[at_] == '\n' && quote != '`') return;
        }
        at_ = std::min(at_ + 1, text_.size());
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
        text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
        text.remove_suffix(1);
    return text;
}

std::string_view first_word(std::string_view text) {
    auto end = std::ranges::find_if_not(text, is_go_word);
    return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/// Behind the bracket that closes the one at the front.
std::string_view behind_group(std::string_view text) {
    std::size_t depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '(') ++depth;
        if (text[i] == ')' && --depth == 0) return text.substr(i + 1);
    }
    return {};
}

/// "a, b" of `a, b int = …`.
std::vector<std::string> leading_names(std::string_view text) {
    std::vector<std::string> names;
    while (true) {
        text = trimmed(text);
        std::string_view name = first_word(text);
        if (name.empty()) return names;
        names.emplace_back(name);
        text = trimmed(text.substr(name.size()));
        if (!text.starts_with(',')) return names;
        text.remove_prefix(1);
    }
}

/// The name that a function declares, "Type.Method" for a method; empty for a function literal.
std::string function_name(std::string_view text) {
    std::string_view rest = trimmed(text.substr(4));
    if (!rest.starts_with('(')) return std::string(first_word(rest));
    std::string_view name = trimmed(behind_group(rest));
    std::string_view word = first_word(name);
    if (word.empty() || !name.substr(word.size()).starts_with('(')) return {};
    std::string_view receiver = rest.substr(1, rest.find(')') - 1);
    std::size_t generic = receiver.find('[');
    receiver = trimmed(receiver.substr(0, generic));
    std::size_t begin = receiver.size();
    while (begin > 0 && is_go_word(receiver[begin - 1]))
        --begin;
    return std::string(receiver.substr(begin)) + "." + std::string(word);
}

/// The specs of `var ( … )` and the like, each as a declaration of its own. Constants stay together
/// for iota.
void add_group(std::string_view word, std::string_view inner, std::size_t line,
               std::vector<GoPiece>& out) {
    Scanner scanner(inner);
    for (scanner.skip_blank(); !scanner.done(); scanner.skip_blank()) {
        std::size_t at = line + scanner.line() - 1;
        std::string_view spec = trimmed(scanner.take_piece());
        if (spec.empty()) return;
        GoPiece piece(word == "import" ? GoPiece::Kind::import : GoPiece::Kind::declaration,
                      std::string(word) + " " + std::string(spec), at);
        piece.names = leading_names(spec);
        out.push_back(std::move(piece));
    }
}

void add_declaration(std::string_view word, std::string_view text, std::size_t line,
                     std::vector<GoPiece>& out) {
    std::string_view rest = trimmed(text.substr(word.size()));
    if (rest.starts_with('(') && rest.ends_with(')')) {
        std::vector<GoPiece> specs;
        std::size_t skipped =
            static_cast<std::size_t>(std::ranges::count(text.substr(0, text.find('(')), '\n'));
        add_group(word, rest.substr(1, rest.size() - 2), line + skipped, specs);
        if (word != "const") {
            std::ranges::move(specs, std::back_inserter(out));
            return;
        }
        GoPiece all(GoPiece::Kind::declaration, std::string(text), line);
        for (GoPiece& spec : specs)
            std::ranges::move(spec.names, std::back_inserter(all.names));
        out.push_back(std::move(all));
        return;
    }
    GoPiece piece(word == "import" ? GoPiece::Kind::import : GoPiece::Kind::declaration,
                  std::string(text), line);
    piece.names = leading_names(rest);
    out.push_back(std::move(piece));
}

/// `x := value` whose value calls nothing.
bool is_plain_definition(std::string_view text) {
    std::size_t sign = text.find(":=");
    if (sign == std::string_view::npos) return false;
    std::string_view left = trimmed(text.substr(0, sign));
    bool names = !left.empty() && std::ranges::all_of(left, [](char c) {
        return is_go_word(c) || c == ',' || c == ' ';
    });
    std::string_view first = first_word(left);
    if (first == "if" || first == "for" || first == "switch" || first == "select") return false;
    return names && text.find_first_of("(<", sign) == std::string_view::npos;
}

void add_piece(std::string_view text, std::size_t line, std::vector<GoPiece>& out) {
    std::string_view word = first_word(text);
    if (word == "package") {
        out.emplace_back(GoPiece::Kind::package, std::string(text), line);
    } else if (word == "import" || word == "var" || word == "const" || word == "type") {
        add_declaration(word, text, line, out);
    } else if (std::string name = word == "func" ? function_name(text) : std::string();
               !name.empty()) {
        bool entry = name == "main" || name == "init";
        GoPiece piece(entry ? GoPiece::Kind::entry : GoPiece::Kind::declaration, std::string(text),
                      line);
        piece.names.push_back(std::move(name));
        out.push_back(std::move(piece));
    } else if (is_plain_definition(text)) {
        std::string variable = "var " + std::string(text);
        variable.erase(variable.find(":="), 1);
        add_declaration("var", variable, line, out);
    } else {
        out.emplace_back(GoPiece::Kind::statement, std::string(text), line);
    }
}

}  // namespace

std::vector<GoPiece> split_go_cell(std::string_view code) {
    std::vector<GoPiece> out;
    Scanner scanner(code);
    for (scanner.skip_blank(); !scanner.done(); scanner.skip_blank()) {
        std::size_t line = scanner.line();
        std::string_view text = trimmed(scanner.take_piece());
        if (!text.empty()) add_piece(text, line, out);
    }
    return out;
}

}  // namespace opensandbox::agent
