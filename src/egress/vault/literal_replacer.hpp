#pragma once

#include "egress/vault/secret.hpp"

#include <array>
#include <list>
#include <memory>
#include <string>
#include <string_view>

namespace opensandbox::egress {

/// Texts and what to put in their place. Literal; in one pass from the front, at each place the
/// longest; what was put in is not looked at again. Immutable, its texts are wiped at the end.
class LiteralReplacements {
  public:
    LiteralReplacements() = default;
    LiteralReplacements(const LiteralReplacements&) = delete;
    LiteralReplacements& operator=(const LiteralReplacements&) = delete;
    ~LiteralReplacements();

    /// `from` is not empty; of the same text the first one given counts.
    void add(std::string from, std::string to);

    [[nodiscard]] bool empty() const { return pairs_.empty(); }
    /// Length of the longest text that is looked for.
    [[nodiscard]] std::size_t longest() const { return longest_; }

    /// Appends the whole text, with replacements, to `out`; returns how many there were.
    std::size_t replace(std::string_view text, std::string& out) const;

    /// Appends what of `text` is certain while more may follow; returns how many bytes were used.
    /// The rest, less than longest() bytes, is to be given again in front of what follows.
    std::size_t replace_part(std::string_view text, std::string& out) const;

  private:
    struct Pair {
        std::string from;
        std::string to;
    };

    /// The longest that the text begins with.
    [[nodiscard]] const Pair* at(std::string_view text) const;
    /// Whether the whole text begins a longer one.
    [[nodiscard]] bool may_go_on(std::string_view text) const;

    std::list<Pair> pairs_;  ///< the longest first; none ever moves in memory
    std::array<bool, 256> begins_{};
    std::size_t longest_ = 0;
};

/// The same for a body that comes in pieces.
class StreamReplacer {
  public:
    explicit StreamReplacer(std::shared_ptr<const LiteralReplacements> replacements)
        : replacements_(std::move(replacements)) {}
    StreamReplacer(StreamReplacer&&) = default;
    StreamReplacer& operator=(StreamReplacer&&) = default;
    ~StreamReplacer() { wipe(held_); }

    /// Appends what is certain to `out`. Holds back less than the longest text looked for.
    void feed(std::string_view piece, std::string& out);
    /// Appends what was held back: the body ends.
    void finish(std::string& out);

  private:
    std::shared_ptr<const LiteralReplacements> replacements_;
    std::string held_;
};

}  // namespace opensandbox::egress
