#include "cli/command_line.hpp"
#include "options/line_reader.hpp"

namespace opensandbox::cli {

namespace {

using Kind = options::Item::Kind;

constexpr options::Grammar kGrammar{.unknown = "there is no option '{name}'{near}",
                                    .no_value = "{name}: takes no value",
                                    .missing = "{name}: needs a value ({what})"};

bool may_be_missing(Positional::Count count) {
    return count == Positional::Count::optional || count == Positional::Count::optional_payload ||
           count == Positional::Count::any_number;
}

class Parser {
  public:
    Parser(const CommandTable& table, const std::vector<std::string>& words)
        : table_(table), reader_(kGrammar, words) {}

    ParsedLine run() {
        while (!line_.problem) {
            const auto item = reader_.next(understood_options(line_.command));
            if (!item) {
                fail(item.error().message());
            } else if (item->kind == Kind::end) {
                break;
            } else {
                take(*item);
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

    void take(const options::Item& item) {
        if (item.kind == Kind::option) {
            if (item.option->name == "--help") line_.wants_help = true;
            if (item.option->name == "--version") line_.wants_version = true;
            line_.arguments.add_option(item.option->name, item.text);
        } else if (item.kind == Kind::word) {
            take_word(item.text);
        } else if (!line_.command) {
            fail("a command must come before '--'");
        }
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
        const auto known = table_.names_in(group_);
        std::string meant = options::suggestion(word, known);
        if (meant.empty()) {
            for (auto name : known)
                meant += (meant.empty() ? "; there are " : ", ") + std::string(name);
        }
        bad_name_ = true;
        fail("there is no command '" + word + "'" + meant);
    }

    void take_positional(const std::string& word) {
        const auto& positionals = line_.command->positionals;
        if (position_ == positionals.size()) return fail("unexpected argument '" + word + "'");
        const Positional& positional = positionals[position_];
        line_.arguments.add_positional(positional.name, word);
        if (positional.count == Positional::Count::payload ||
            positional.count == Positional::Count::optional_payload) {
            for (const auto& rest : reader_.rest())
                line_.arguments.add_positional(positional.name, rest);
        }
        if (positional.count != Positional::Count::many &&
            positional.count != Positional::Count::any_number) {
            ++position_;
        }
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
    options::LineReader reader_;
    std::size_t position_ = 0;
    std::string group_;
    bool bad_name_ = false;
    ParsedLine line_;
};

}  // namespace

ParsedLine parse_line(const CommandTable& table, const std::vector<std::string>& words) {
    return Parser(table, words).run();
}

}  // namespace opensandbox::cli
