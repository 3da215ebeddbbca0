#include "cli/completion.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::cli {

namespace {

constexpr std::array<std::string_view, 9> kStates{"Pending",    "Running",  "Pausing",
                                                  "Paused",     "Resuming", "Stopping",
                                                  "Terminated", "Failed",   "Unknown"};
constexpr std::array<std::string_view, 4> kFileValues{"PATH", "FILE", "LOCAL", "DIR"};

/// Where the words before the last one lead.
class Line {
  public:
    Line(const CommandTable& table, const std::vector<std::string>& words) : table_(table) {
        for (std::size_t i = 0; i + 1 < words.size(); ++i)
            take(words[i]);
    }

    [[nodiscard]] const Command* command() const { return command_; }
    [[nodiscard]] const std::string& group() const { return group_; }
    [[nodiscard]] const Option* waiting() const { return waiting_; }
    [[nodiscard]] bool payload() const { return payload_; }
    [[nodiscard]] std::size_t position() const { return position_; }

    [[nodiscard]] const Option* find_option(std::string_view name) const {
        return options::find(understood_options(command_), name);
    }

  private:
    void take(const std::string& word) {
        if (waiting_) {
            waiting_ = nullptr;
        } else if (payload_) {
            return;
        } else if (word == "--") {
            payload_ = true;
        } else if (word.size() > 1 && word[0] == '-') {
            const Option* option = find_option(word);
            if (option && !option->value.empty()) waiting_ = option;
        } else if (command_) {
            take_positional();
        } else {
            take_name(word);
        }
    }
    void take_name(const std::string& word) {
        command_ = table_.find(group_, word);
        if (command_) return;
        const std::string inner = group_.empty() ? word : group_ + " " + word;
        if (table_.find_group(inner)) group_ = inner;
    }
    void take_positional() {
        using Count = Positional::Count;
        if (position_ >= command_->positionals.size()) return;
        const Count count = command_->positionals[position_].count;
        if (count == Count::payload || count == Count::optional_payload) payload_ = true;
        if (count != Count::many && count != Count::any_number) ++position_;
    }

    const CommandTable& table_;
    const Command* command_ = nullptr;
    std::string group_;
    const Option* waiting_ = nullptr;
    bool payload_ = false;
    std::size_t position_ = 0;
};

void offer(Completion& out, std::string_view word) {
    if (word.starts_with(out.prefix)) out.words.emplace_back(word);
}

void offer_choices(Completion& out, std::string_view choices) {
    while (!choices.empty()) {
        const auto end = choices.find('|');
        offer(out, choices.substr(0, end));
        choices.remove_prefix(end == std::string_view::npos ? choices.size() : end + 1);
    }
}

void offer_value(Completion& out, const Option& option, const Command* command) {
    if (option.value.find('|') != std::string_view::npos) {
        offer_choices(out, option.value);
    } else if (option.name == "--output" && command) {
        for (Format format : command->formats)
            offer(out, to_string(format));
    } else if (option.value == "STATE") {
        for (auto state : kStates)
            offer(out, state);
    } else if (option.value == "SANDBOX_ID" || option.name == "--sandbox-id") {
        out.sandbox_ids = true;
    } else {
        out.files = std::ranges::find(kFileValues, option.value) != kFileValues.end() ||
                    option.name.ends_with("-file");
    }
}

void offer_names(Completion& out, const CommandTable& table, const std::string& group) {
    for (auto name : table.names_in(group))
        offer(out, name);
    if (!group.empty()) return;
    for (std::string_view name : {"serve", "init-config", "controller", "mcp", "version", "help"})
        offer(out, name);
}

void offer_options(Completion& out, const Command* command) {
    if (command) {
        for (const auto& option : command->options)
            offer(out, option.name);
    }
    for (const auto& option : global_options()) {
        const bool useless = option.name == "--output" && command && command->formats.empty();
        if (!useless) offer(out, option.name);
    }
}

void offer_positional(Completion& out, const Command& command, std::size_t position) {
    if (position >= command.positionals.size()) return;
    const Positional& positional = command.positionals[position];
    if (positional.name == "SANDBOX_ID") {
        out.sandbox_ids = true;
    } else if (positional.name.find('|') != std::string_view::npos) {
        offer_choices(out, positional.name);
    } else {
        const bool in_sandbox = positional.name == "PATH" || positional.name == "REMOTE";
        out.files = !in_sandbox;
        // `cp` takes ids and local paths alike.
        out.sandbox_ids = positional.name == "FROM" || positional.name == "TO";
    }
}

}  // namespace

Completion complete(const CommandTable& table, const std::vector<std::string>& words) {
    Completion out;
    const Line line(table, words);
    out.prefix = words.empty() ? "" : words.back();
    if (line.waiting()) {
        offer_value(out, *line.waiting(), line.command());
        return out;
    }
    if (line.payload()) {
        out.files = true;
        return out;
    }
    if (out.prefix.starts_with("--") && out.prefix.find('=') != std::string::npos) {
        const auto equals = out.prefix.find('=');
        const Option* option = line.find_option(out.prefix.substr(0, equals));
        out.before = out.prefix.substr(0, equals + 1);
        out.prefix.erase(0, equals + 1);
        if (option) offer_value(out, *option, line.command());
        return out;
    }
    if (out.prefix.starts_with('-')) {
        offer_options(out, line.command());
    } else if (line.command()) {
        offer_positional(out, *line.command(), line.position());
    } else {
        offer_names(out, table, line.group());
    }
    return out;
}

}  // namespace opensandbox::cli
