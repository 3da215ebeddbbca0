#include "cli/parse.hpp"

#include <algorithm>
#include <numeric>

namespace opensandbox::cli {

namespace {

std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
        }
    }
    return row.back();
}

bool may_be_missing(Positional::Count count) {
    return count == Positional::Count::optional || count == Positional::Count::optional_payload ||
           count == Positional::Count::any_number;
}

class Parser {
  public:
    Parser(const CommandTable& table, const std::vector<std::string>& words)
        : table_(table), words_(words) {}

    ParsedLine run() {
        while (at_ < words_.size() && !line_.problem) {
            const std::string& word = words_[at_++];
            if (word == "--") {
                take_payload();
            } else if (word.size() > 1 && word[0] == '-') {
                word.starts_with("--") ? take_long(word) : take_letters(word);
            } else {
                take_word(word);
            }
        }
        line_.help_group = group_;
        if (line_.wants_help || line_.wants_version) {
            if (!bad_name_) line_.problem.reset();
            return std::move(line_);
        }
        if (!line_.problem) check_complete();
        if (!line_.problem) choose_format();
        return std::move(line_);
    }

  private:
    void fail(const std::string& message) {
        if (line_.problem) return;
        const std::string where = line_.command ? line_.command->full_name() : group_;
        line_.problem = Failure::usage(where.empty() ? message : where + ": " + message);
    }

    const Option* find_option(auto matches) const {
        if (line_.command) {
            auto own = std::ranges::find_if(line_.command->options, matches);
            if (own != line_.command->options.end()) return &*own;
        }
        auto global = std::ranges::find_if(global_options(), matches);
        return global == global_options().end() ? nullptr : &*global;
    }

    void unknown_option(const std::string& shown, std::string_view name) {
        std::vector<std::string_view> known;
        if (line_.command) {
            for (const auto& option : line_.command->options)
                known.push_back(option.name);
        }
        for (const auto& option : global_options())
            known.push_back(option.name);
        auto meant = nearest(name, known);
        fail("there is no option '" + shown + "'" +
             (meant.empty() ? "" : "; did you mean '" + std::string(meant) + "'?"));
    }

    void take_long(const std::string& word) {
        const auto equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const Option* option = find_option([&](const Option& o) {
            return o.name == name || (!o.alias.empty() && o.alias == name);
        });
        if (!option) return unknown_option(name, name);
        if (equals == std::string::npos) return take_option(*option);
        if (option->value.empty()) return fail(name + ": takes no value");
        keep(*option, word.substr(equals + 1));
    }

    void take_letters(const std::string& word) {
        for (std::size_t i = 1; i < word.size() && !line_.problem; ++i) {
            const char letter = word[i];
            const Option* option = find_option([&](const Option& o) { return o.letter == letter; });
            if (!option) return unknown_option(std::string("-") + letter, word);
            if (option->value.empty()) {
                keep(*option, "");
                continue;
            }
            if (i + 1 == word.size()) return take_option(*option);
            const std::size_t from = word[i + 1] == '=' ? i + 2 : i + 1;
            return keep(*option, word.substr(from));
        }
    }

    void take_option(const Option& option) {
        if (option.value.empty()) return keep(option, "");
        if (at_ == words_.size()) {
            return fail(std::string(option.name) + ": needs a value (" + std::string(option.value) +
                        ")");
        }
        keep(option, words_[at_++]);
    }

    void keep(const Option& option, std::string value) {
        if (option.name == "--help") line_.wants_help = true;
        if (option.name == "--version") line_.wants_version = true;
        line_.arguments.add_option(option.name, std::move(value));
    }

    void take_word(const std::string& word) {
        if (line_.command) return take_positional(word);
        if (group_.empty()) {
            if (word == "help" && !line_.wants_help) {
                line_.wants_help = true;
                return;
            }
            if (word == "version") {
                line_.wants_version = true;
                return;
            }
        }
        const std::string group = group_.empty() ? word : group_ + " " + word;
        if (table_.find_group(group)) {
            group_ = group;
            return;
        }
        line_.command = table_.find(group_, word);
        if (!line_.command) unknown_command(word);
    }

    void unknown_command(const std::string& word) {
        std::vector<std::string_view> known;
        for (const auto& command : table_.commands) {
            if (command.group == group_ && !command.hidden) known.push_back(command.name);
        }
        const std::string prefix = group_.empty() ? "" : group_ + " ";
        for (const auto& group : table_.groups) {
            if (!group.name.starts_with(prefix)) continue;
            const std::string_view name = group.name.substr(prefix.size());
            if (!name.empty() && name.find(' ') == std::string_view::npos) known.push_back(name);
        }
        auto meant = nearest(word, known);
        std::string message = "there is no command '" + word + "'";
        if (!meant.empty()) {
            message += "; did you mean '" + std::string(meant) + "'?";
        } else {
            std::string names;
            for (auto name : known)
                names += (names.empty() ? "" : ", ") + std::string(name);
            message += "; there are " + names;
        }
        bad_name_ = true;
        fail(message);
    }

    void take_positional(const std::string& word) {
        const auto& positionals = line_.command->positionals;
        if (position_ == positionals.size()) return fail("unexpected argument '" + word + "'");
        const Positional& positional = positionals[position_];
        line_.arguments.add_positional(positional.name, word);
        if (positional.count == Positional::Count::payload ||
            positional.count == Positional::Count::optional_payload) {
            while (at_ < words_.size()) {
                line_.arguments.add_positional(positional.name, words_[at_++]);
            }
        }
        if (positional.count != Positional::Count::many &&
            positional.count != Positional::Count::any_number) {
            ++position_;
        }
    }

    /// What follows `--`: words that are no options.
    void take_payload() {
        if (!line_.command) return fail("a command must come before '--'");
        while (at_ < words_.size() && !line_.problem)
            take_positional(words_[at_++]);
    }

    void check_complete() {
        if (!line_.command) {
            line_.wants_help = true;
            line_.problem = Failure::usage(group_.empty() ? "a command is needed"
                                                          : group_ + ": a command is needed");
            return;
        }
        for (const auto& positional : line_.command->positionals) {
            if (may_be_missing(positional.count)) continue;
            if (!line_.arguments.rest(positional.name).empty()) continue;
            return fail(std::string(positional.name) +
                        " is missing: " + std::string(positional.help));
        }
        for (const auto& option : line_.command->options) {
            if (!option.required || line_.arguments.has(option.name)) continue;
            return fail(std::string(option.name) + " " + std::string(option.value) +
                        " is missing: " + std::string(option.help));
        }
    }

    void choose_format() {
        const auto& formats = line_.command->formats;
        if (!formats.empty()) line_.format = formats.front();
        auto wanted = line_.arguments.get("--output");
        if (!wanted) return;
        if (formats.empty()) return fail("--output: this command has no output formats");
        std::string accepted;
        for (Format format : formats) {
            if (to_string(format) == *wanted) {
                line_.format = format;
                return;
            }
            accepted += (accepted.empty() ? "" : ", ") + std::string(to_string(format));
        }
        fail("--output: '" + *wanted + "' is not accepted; use " + accepted);
    }

    const CommandTable& table_;
    const std::vector<std::string>& words_;
    std::size_t at_ = 0;
    std::size_t position_ = 0;
    std::string group_;
    bool bad_name_ = false;
    ParsedLine line_;
};

}  // namespace

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known) {
    std::string_view best;
    std::size_t least = 3;  // more than two changes is no typing slip
    for (auto name : known) {
        const std::size_t changes = distance(word, name);
        if (changes < least && changes < name.size() / 2 + 1) {
            least = changes;
            best = name;
        }
    }
    return best;
}

ParsedLine parse_line(const CommandTable& table, const std::vector<std::string>& words) {
    return Parser(table, words).run();
}

}  // namespace opensandbox::cli
