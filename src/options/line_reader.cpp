#include "options/line_reader.hpp"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <utility>

namespace opensandbox::options {

namespace {

using Facts = std::initializer_list<std::pair<std::string_view, std::string_view>>;

/// The text with facts in place of their names.
Error mistake(std::string_view text, Facts facts) {
    std::string out;
    while (true) {
        const auto open = text.find('{');
        out += text.substr(0, open);
        if (open == std::string_view::npos) return invalid(std::move(out));
        const auto close = text.find('}', open);
        for (const auto& [name, fact] : facts) {
            if (name == text.substr(open + 1, close - open - 1)) out += fact;
        }
        text.remove_prefix(close + 1);
    }
}

Status set(const Option& option, std::string_view complaint, std::string_view name,
           const std::string& value) {
    const std::string rule = option.set(value);
    if (rule.empty()) return {};
    return mistake(complaint, {{"name", name}, {"value", value}, {"rule", rule}});
}

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

/// The known name nearest to a mistyped one; empty when none is near.
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

}  // namespace

std::string suggestion(std::string_view word, const std::vector<std::string_view>& known) {
    const auto meant = nearest(word, known);
    return meant.empty() ? "" : "; did you mean '" + std::string(meant) + "'?";
}

const Option* find(const Tables& tables, std::string_view name) {
    const bool letter = name.size() == 2 && name[0] == '-' && name[1] != '-';
    for (const auto& table : tables) {
        const auto found = std::ranges::find_if(table, [&](const Option& o) {
            return o.name == name || (!o.alias.empty() && o.alias == name) ||
                   (letter && o.letter == name[1]);
        });
        if (found != table.end()) return &*found;
    }
    return nullptr;
}

Result<Item> LineReader::next(const Tables& tables) {
    if (!letters_.empty()) return next_letter(tables);
    if (at_ == words_.size()) return Item{Item::Kind::end};
    const std::string& word = words_[at_++];
    if (ended_ || word.size() < 2 || word[0] != '-') {
        ended_ = ended_ || grammar_.go;
        return Item{Item::Kind::word, nullptr, word};
    }
    if (word == "--") {
        ended_ = true;
        return Item{Item::Kind::separator, nullptr, word};
    }
    if (grammar_.go || word[1] == '-') return take_named(tables, word);
    letters_ = std::string_view(word).substr(1);
    return next_letter(tables);
}

std::vector<std::string> LineReader::rest() {
    const auto left = words_.subspan(std::exchange(at_, words_.size()));
    return {left.begin(), left.end()};
}

Result<Item> LineReader::next_letter(const Tables& tables) {
    const std::string name{'-', letters_.front()};
    letters_.remove_prefix(1);
    const Option* option = find(tables, name);
    if (!option) return unknown(tables, name);
    if (option->value.empty() || letters_.empty()) return take_value(*option);
    const auto value = std::exchange(letters_, {});
    return Item{Item::Kind::option, option, std::string(value.substr(value[0] == '=' ? 1 : 0))};
}

Result<Item> LineReader::take_named(const Tables& tables, const std::string& word) {
    const auto equals = word.find('=');
    std::string name = word.substr(0, equals);
    if (grammar_.go && name.starts_with("--")) name.erase(0, 1);
    const Option* option = find(tables, name);
    if (!option) return unknown(tables, name);
    if (equals == std::string::npos) return take_value(*option);
    if (option->value.empty() && !grammar_.go) {
        return mistake(grammar_.no_value, {{"name", name}, {"word", word}});
    }
    return Item{Item::Kind::option, option, word.substr(equals + 1)};
}

Result<Item> LineReader::take_value(const Option& option) {
    if (option.value.empty()) return Item{Item::Kind::option, &option, "true"};
    if (at_ == words_.size()) {
        return mistake(grammar_.missing,
                       {{"name", option.name}, {"word", given()}, {"what", option.value}});
    }
    return Item{Item::Kind::option, &option, words_[at_++]};
}

Error LineReader::unknown(const Tables& tables, std::string_view name) const {
    std::vector<std::string_view> known;
    for (const auto& table : tables) {
        for (const auto& option : table)
            known.push_back(option.name);
    }
    const std::string_view typed = std::string_view(given()).substr(0, given().find('='));
    return mistake(grammar_.unknown,
                   {{"name", name}, {"word", given()}, {"near", suggestion(typed, known)}});
}

Result<std::vector<std::string>> parse(std::span<const Option> table, const Grammar& grammar,
                                       std::span<const std::string> words,
                                       const Variable& variable) {
    for (const Option& option : table) {
        if (!variable || option.variable.empty()) continue;
        const auto value = variable(option.variable);
        if (!value || value->empty()) continue;
        Status taken = set(option, grammar.refused_variable, option.variable, *value);
        if (!taken) return taken.error();
    }
    std::vector<std::string> rest;
    LineReader reader(grammar, words);
    while (true) {
        auto item = reader.next({table});
        if (!item) return item.error();
        if (item->kind == Item::Kind::end) return rest;
        if (item->kind == Item::Kind::option) {
            Status taken = set(*item->option, grammar.refused, item->option->name, item->text);
            if (!taken) return taken.error();
        } else if (item->kind == Item::Kind::word || grammar.words == 0) {
            if (rest.size() == grammar.words) {
                return mistake(grammar.unexpected, {{"word", item->text}});
            }
            rest.push_back(std::move(item->text));
        }
    }
}

}  // namespace opensandbox::options
