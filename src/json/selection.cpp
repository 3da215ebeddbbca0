#include "json/selection.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>

#include <cmath>
#include <optional>
#include <utility>

namespace opensandbox::json {
namespace {

using Failure = boost::system::error_code;

/// Builds what is selected of the steps that a parser takes.
class Gatherer {
  public:
    // NOLINTBEGIN(readability-identifier-naming): the parser's names.
    static constexpr std::size_t max_object_size = object::max_size();
    static constexpr std::size_t max_array_size = array::max_size();
    static constexpr std::size_t max_key_size = boost::json::string::max_size();
    static constexpr std::size_t max_string_size = boost::json::string::max_size();
    // NOLINTEND(readability-identifier-naming)

    explicit Gatherer(const Selection& selection) : next_(&selection) { built_.reset(); }

    value release() { return built_.release(); }
    /// Whether a number was larger than any that JSON can say again, kept or not.
    [[nodiscard]] bool had_infinite() const { return had_infinite_; }

    bool on_document_begin(Failure& /*ec*/) { return true; }
    bool on_document_end(Failure& /*ec*/) { return true; }
    bool on_object_begin(Failure& /*ec*/) { return open(false); }
    bool on_array_begin(Failure& /*ec*/) { return open(true); }
    bool on_object_end(std::size_t /*n*/, Failure& /*ec*/) { return close(); }
    bool on_array_end(std::size_t /*n*/, Failure& /*ec*/) { return close(); }

    bool on_key_part(std::string_view part, std::size_t /*n*/, Failure& /*ec*/) {
        if (open_.back().selection) key_.append(part);
        return true;
    }
    bool on_key(std::string_view part, std::size_t /*n*/, Failure& /*ec*/) {
        const Selection* within = open_.back().selection;
        if (!within) return true;
        key_.append(part);
        next_ = within->all() ? within : within->below(key_);
        if (next_) built_.push_key(key_);
        key_.clear();
        return true;
    }
    bool on_string_part(std::string_view part, std::size_t /*n*/, Failure& /*ec*/) {
        if (next_) built_.push_chars(part);
        return true;
    }
    bool on_string(std::string_view part, std::size_t /*n*/, Failure& /*ec*/) {
        return took([&] { built_.push_string(part); });
    }
    bool on_number_part(std::string_view /*part*/, Failure& /*ec*/) { return true; }
    bool on_int64(std::int64_t number, std::string_view /*text*/, Failure& /*ec*/) {
        return took([&] { built_.push_int64(number); });
    }
    bool on_uint64(std::uint64_t number, std::string_view /*text*/, Failure& /*ec*/) {
        return took([&] { built_.push_uint64(number); });
    }
    bool on_double(double number, std::string_view /*text*/, Failure& /*ec*/) {
        had_infinite_ = had_infinite_ || !std::isfinite(number);
        return took([&] { built_.push_double(number); });
    }
    bool on_bool(bool flag, Failure& /*ec*/) {
        return took([&] { built_.push_bool(flag); });
    }
    bool on_null(Failure& /*ec*/) {
        return took([&] { built_.push_null(); });
    }
    bool on_comment_part(std::string_view /*part*/, Failure& /*ec*/) { return true; }
    bool on_comment(std::string_view /*part*/, Failure& /*ec*/) { return true; }

  private:
    /// An object or a list that is not at its end.
    struct Level {
        const Selection* selection;  ///< null: nothing of it is kept
        bool list;
        std::size_t kept = 0;  ///< members or elements
    };

    bool open(bool list) {
        open_.push_back({next_, list});
        return true;
    }
    bool close() {
        const Level closed = open_.back();
        open_.pop_back();
        next_ = closed.selection;
        return took([&] {
            closed.list ? built_.push_array(closed.kept) : built_.push_object(closed.kept);
        });
    }
    /// A value is over; the next one of a list is selected as this one was.
    template <class Push>
    bool took(Push push) {
        if (!next_) return true;
        push();
        if (!open_.empty()) ++open_.back().kept;
        return true;
    }

    boost::json::value_stack built_;
    std::vector<Level> open_;
    const Selection* next_;  ///< of the value that comes next
    std::string key_;
    bool had_infinite_ = false;
};

Error refuse(std::string_view why, std::size_t offset) {
    return invalid("JSON: " + std::string(why) + " at byte " + std::to_string(offset));
}

}  // namespace

Selection::Selection(const std::vector<std::string>& paths) {
    for (std::string_view path : paths) {
        Selection* here = this;
        while (!here->all_) {
            const std::size_t dot = path.find('.');
            auto& member = here->members_[std::string(path.substr(0, dot))];
            if (!member) member = std::make_unique<Selection>(std::vector<std::string>());
            here = member.get();
            if (dot == std::string_view::npos) here->all_ = true;
            path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
        }
    }
}

const Selection* Selection::below(std::string_view name) const {
    const auto found = members_.find(name);
    return found == members_.end() ? nullptr : found->second.get();
}

Result<value> parse_selected(std::string_view text, const Selection& selection) {
    boost::json::parse_options options;
    options.max_depth = 64;
    boost::json::basic_parser<Gatherer> parser(options, selection);
    Failure failure;
    std::size_t used = parser.write_some(true, text.data(), text.size(), failure);
    if (!failure) {
        if (used < text.size()) return refuse("extra data", used);
        parser.write_some(false, nullptr, 0, failure);
    }
    if (failure) return refuse(failure.message(), used);
    // A later member of the same name may stand for the one with such a number.
    if (parser.handler().had_infinite()) {
        if (auto whole = parse(text); !whole) return whole.error();
    }
    return parser.handler().release();
}

}  // namespace opensandbox::json
