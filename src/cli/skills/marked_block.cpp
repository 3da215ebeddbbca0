#include "cli/skills/marked_block.hpp"

namespace opensandbox::cli {

namespace {

struct Extent {
    std::size_t begin;
    std::size_t end;  ///< behind the line end of the last line
};

/// Where `line` stands as a whole line, from `from` on.
std::optional<Extent> find_line(std::string_view text, std::string_view line, std::size_t from) {
    for (auto at = text.find(line, from); at != std::string_view::npos;
         at = text.find(line, at + 1)) {
        auto end = at + line.size();
        if (at != 0 && text[at - 1] != '\n') continue;
        if (text.substr(end).starts_with('\r')) ++end;
        if (end == text.size()) return Extent{at, end};
        if (text[end] == '\n') return Extent{at, end + 1};
    }
    return std::nullopt;
}

std::string begin_line(std::string_view marker) {
    return "<!-- BEGIN " + std::string(marker) + " -->";
}

std::string end_line(std::string_view marker) {
    return "<!-- END " + std::string(marker) + " -->";
}

/// Of several marks nobody can tell which lines between them are ours.
sdk::Result<std::optional<Extent>> find_block(std::string_view text, std::string_view marker) {
    const auto conflict = [](const std::string& line, const std::string& rule) {
        return sdk::Error(sdk::ErrorCode::conflict, "the line '" + line + "' " + rule);
    };
    const std::string opening = begin_line(marker);
    const std::string closing = end_line(marker);
    const auto begin = find_line(text, opening, 0);
    const auto end = find_line(text, closing, 0);
    if (!begin && !end) return std::optional<Extent>();
    if (!begin) return conflict(closing, "is there without '" + opening + "'");
    if (!end) return conflict(opening, "is there without '" + closing + "'");
    if (end->begin < begin->end) return conflict(closing, "stands before '" + opening + "'");
    if (find_line(text, opening, begin->end)) return conflict(opening, "stands more than once");
    if (find_line(text, closing, end->end)) return conflict(closing, "stands more than once");
    return std::optional<Extent>(Extent{begin->begin, end->end});
}

}  // namespace

sdk::Result<bool> has_block(std::string_view text, std::string_view marker) {
    auto found = find_block(text, marker);
    if (!found) return found.error();
    return found->has_value();
}

sdk::Result<std::string> with_block(std::string_view text, std::string_view marker,
                                    std::string_view content) {
    auto found = find_block(text, marker);
    if (!found) return found.error();
    std::string block = begin_line(marker) + "\n" + std::string(content);
    if (!block.ends_with('\n')) block += '\n';
    block += end_line(marker) + "\n";
    if (*found) {
        return std::string(text.substr(0, (*found)->begin)) + block +
               std::string(text.substr((*found)->end));
    }
    std::string out(text);
    if (!out.empty() && !out.ends_with('\n')) out += '\n';
    if (!out.empty() && !out.ends_with("\n\n")) out += '\n';
    return out + block;
}

sdk::Result<std::optional<std::string>> without_block(std::string_view text,
                                                      std::string_view marker) {
    auto found = find_block(text, marker);
    if (!found) return found.error();
    if (!*found) return std::optional<std::string>();
    std::string_view before = text.substr(0, (*found)->begin);
    std::string_view after = text.substr((*found)->end);
    // One of the blank lines around it came with it.
    if (before.ends_with("\n\n") && (after.empty() || after.starts_with('\n'))) {
        before.remove_suffix(1);
    } else if (before.empty() && after.starts_with('\n')) {
        after.remove_prefix(1);
    }
    return std::optional<std::string>(std::string(before) + std::string(after));
}

}  // namespace opensandbox::cli
