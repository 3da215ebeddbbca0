#include "imagebuild/ignore.hpp"

#include "imagebuild/words.hpp"

namespace opensandbox::imagebuild {
namespace {

constexpr std::size_t kMostRules = 10'000;

bool matches_with_parents(const PathPattern& pattern, std::string_view path) {
    for (auto slash = path.find('/'); slash != std::string_view::npos;
         slash = path.find('/', slash + 1)) {
        if (pattern.matches(path.substr(0, slash))) return true;
    }
    return pattern.matches(path);
}

}  // namespace

Result<IgnoreRules> IgnoreRules::parse(std::string_view text, std::string_view file) {
    IgnoreRules out;
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    for (std::size_t number = 1; !text.empty(); ++number) {
        const auto end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.starts_with('#')) continue;
        line = trim(line);
        if (line.empty()) continue;
        const bool negated = line.starts_with('!');
        if (negated) line = trim(line.substr(1));
        auto refused = [&](const std::string& why) {
            return Error(ErrorCode::invalid_argument,
                         std::string(file) + ":" + std::to_string(number) + ": " + why);
        };
        if (negated && line.empty()) return refused("'!' needs a pattern");
        auto cleaned = clean_path(line);
        if (!cleaned) return refused("'" + std::string(line) + "' " + cleaned.error().message());
        if (cleaned->empty()) continue;  // the directory itself cannot be left out
        auto pattern = PathPattern::parse(*cleaned, PathPattern::Deep::yes);
        if (!pattern) return refused(pattern.error().message());
        if (out.rules_.size() == kMostRules) return refused("there are more than 10000 rules");
        out.rules_.emplace_back(std::move(*pattern), negated);
        out.exceptions_ = out.exceptions_ || negated;
    }
    return out;
}

bool IgnoreRules::ignores(std::string_view path) const {
    for (std::size_t i = rules_.size(); i-- > 0;) {
        if (matches_with_parents(rules_[i].pattern, path)) return !rules_[i].negated;
    }
    return false;
}

}  // namespace opensandbox::imagebuild
