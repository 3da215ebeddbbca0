#pragma once

#include "base/error.hpp"
#include "options/option.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace opensandbox::options {

/// How a role's line is read, and its words for what is wrong. In these {name} is the option's
/// name, {word} the word as it was given, {value} its value, {rule} what is accepted in place of
/// that, {what} what the option takes, {near} a name that may have been meant.
struct Grammar {
    /// As Go's flag package has it: names have one dash or two, flags may be given a value, and
    /// options end at the first word that is none.
    bool go = false;
    std::size_t words = 0;  ///< how many that are no options; parse() takes
    std::string_view unknown = {};
    std::string_view unexpected = unknown;  ///< a word too many
    std::string_view no_value = unknown;    ///< a flag was given one
    std::string_view missing = unknown;     ///< an option was given none
    std::string_view refused = unknown;
    std::string_view refused_variable = refused;  ///< of the environment: {name} is its name
};

/// Tables of options, the first that has a name decides.
using Tables = std::vector<std::span<const Option>>;

/// The option of a name or letter as it is typed; null when there is none.
const Option* find(const Tables& tables, std::string_view name);

/// "; did you mean 'NAME'?" of the known name nearest to a mistyped one, or nothing.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& known);

/// One piece of a line.
struct Item {
    enum class Kind : unsigned char { option, word, separator, end } kind;
    const Option* option = nullptr;
    std::string text = {};  ///< the word, or the option's value: "true" for a flag
};

/// Takes a line apart: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, joined flags (-vh); after
/// `--` all are words.
class LineReader {
  public:
    /// Both must outlive it.
    LineReader(const Grammar& grammar, std::span<const std::string> words)
        : grammar_(grammar), words_(words) {}

    /// The next piece, read with what is known by now.
    Result<Item> next(const Tables& tables);
    /// All words that are left, as they stand.
    std::vector<std::string> rest();

  private:
    Result<Item> next_letter(const Tables& tables);
    Result<Item> take_named(const Tables& tables, const std::string& word);
    Result<Item> take_value(const Option& option);
    [[nodiscard]] Error unknown(const Tables& tables, std::string_view name) const;
    [[nodiscard]] const std::string& given() const { return words_[at_ - 1]; }

    const Grammar& grammar_;
    std::span<const std::string> words_;
    std::size_t at_ = 0;
    std::string_view letters_;  ///< left of a word of joined ones
    bool ended_ = false;
};

/// Reads a variable of the environment.
using Variable = std::function<std::optional<std::string>(std::string_view name)>;

/// Sets what the environment asks for, then what the line does; returns the words that are no
/// options. An empty variable asks for nothing. invalid_argument says what is wrong.
Result<std::vector<std::string>> parse(std::span<const Option> table, const Grammar& grammar,
                                       std::span<const std::string> words,
                                       const Variable& variable = {});

}  // namespace opensandbox::options
