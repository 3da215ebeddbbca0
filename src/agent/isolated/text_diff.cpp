#include "agent/isolated/text_diff.hpp"

#include "base/json_string.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace opensandbox::agent {
namespace {

constexpr int kContext = 3;
/// Most lines inserted and deleted that are searched for a shortest edit: 4 MiB of traces.
constexpr int kMaxEdits = 1000;

using Lines = std::vector<std::string_view>;

Lines split(std::string_view text) {
    Lines lines;
    while (!text.empty()) {
        std::size_t end = text.find('\n');
        std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
        lines.push_back(text.substr(0, size));
        text.remove_prefix(size);
    }
    return lines;
}

enum class Kind : char { keep = ' ', remove = '-', insert = '+' };

struct Edit {
    Kind kind;
    std::string_view line;
};

/// Myers' shortest edit of the parts that differ, found forwards, followed backwards.
class ShortestEdit {
  public:
    ShortestEdit(const Lines& before, const Lines& after, std::size_t begin, std::size_t end_before,
                 std::size_t end_after)
        : before_(before),
          after_(after),
          begin_(begin),
          size_before_(static_cast<int>(end_before - begin)),
          size_after_(static_cast<int>(end_after - begin)) {}

    /// Appends the edits; false when there are too many.
    bool append(std::vector<Edit>& out) {
        if (!search()) return false;
        std::vector<Edit> reversed;
        int x = size_before_;
        int y = size_after_;
        for (int d = static_cast<int>(traces_.size()) - 1; d >= 0; --d) {
            const std::vector<int>& trace = traces_[static_cast<std::size_t>(d)];
            int k = x - y;
            bool down = goes_down(trace, d, k);
            int previous_k = down ? k + 1 : k - 1;
            int previous_x = d == 0 ? 0 : at(trace, d, previous_k);
            int previous_y = d == 0 ? 0 : previous_x - previous_k;
            while (x > previous_x && y > previous_y && x > 0 && y > 0) {
                reversed.emplace_back(Kind::keep, line(before_, --x));
                --y;
            }
            if (d == 0) break;
            if (down) {
                reversed.emplace_back(Kind::insert, line(after_, --y));
            } else {
                reversed.emplace_back(Kind::remove, line(before_, --x));
            }
        }
        out.insert(out.end(), reversed.rbegin(), reversed.rend());
        return true;
    }

  private:
    [[nodiscard]] std::string_view line(const Lines& lines, int index) const {
        return lines[begin_ + static_cast<std::size_t>(index)];
    }
    /// The trace before step d holds diagonals -d to d.
    static int at(const std::vector<int>& trace, int d, int k) {
        return trace[static_cast<std::size_t>(std::ptrdiff_t{k} + d)];
    }
    static bool goes_down(const std::vector<int>& trace, int d, int k) {
        return k == -d || (k != d && at(trace, d, k - 1) < at(trace, d, k + 1));
    }

    bool search() {
        std::vector<int> furthest(2 * static_cast<std::size_t>(kMaxEdits) + 3, 0);
        auto on = [&](int k) -> int& {
            return furthest[static_cast<std::size_t>(std::ptrdiff_t{k} + kMaxEdits + 1)];
        };
        for (int d = 0; d <= kMaxEdits; ++d) {
            std::vector<int> trace(2 * static_cast<std::size_t>(d) + 1);
            for (int k = -d; k <= d; ++k)
                trace[static_cast<std::size_t>(std::ptrdiff_t{k} + d)] = on(k);
            traces_.push_back(std::move(trace));
            for (int k = -d; k <= d; k += 2) {
                int x = k == -d || (k != d && on(k - 1) < on(k + 1)) ? on(k + 1) : on(k - 1) + 1;
                if (d == 0) x = 0;
                int y = x - k;
                while (x < size_before_ && y < size_after_ && line(before_, x) == line(after_, y)) {
                    ++x;
                    ++y;
                }
                on(k) = x;
                if (x >= size_before_ && y >= size_after_) return true;
            }
        }
        return false;
    }

    const Lines& before_;
    const Lines& after_;
    std::size_t begin_;
    int size_before_;
    int size_after_;
    std::vector<std::vector<int>> traces_;
};

std::vector<Edit> edits_between(const Lines& before, const Lines& after) {
    std::size_t begin = 0;
    while (begin < before.size() && begin < after.size() && before[begin] == after[begin])
        ++begin;
    std::size_t end_before = before.size();
    std::size_t end_after = after.size();
    while (end_before > begin && end_after > begin &&
           before[end_before - 1] == after[end_after - 1]) {
        --end_before;
        --end_after;
    }
    std::vector<Edit> edits;
    for (std::size_t i = 0; i < begin; ++i)
        edits.emplace_back(Kind::keep, before[i]);
    if (!ShortestEdit(before, after, begin, end_before, end_after).append(edits)) {
        for (std::size_t i = begin; i < end_before; ++i)
            edits.emplace_back(Kind::remove, before[i]);
        for (std::size_t i = begin; i < end_after; ++i)
            edits.emplace_back(Kind::insert, after[i]);
    }
    for (std::size_t i = end_before; i < before.size(); ++i)
        edits.emplace_back(Kind::keep, before[i]);
    return edits;
}

std::string range_of(std::size_t first, std::size_t count) {
    // An empty range names the line before it.
    std::string out = std::to_string(count == 0 ? first : first + 1);
    return count == 1 ? out : out + "," + std::to_string(count);
}

void append_hunk(std::string& out, const std::vector<Edit>& edits, std::size_t begin,
                 std::size_t end, std::size_t old_line, std::size_t new_line) {
    std::size_t old_count = 0;
    std::size_t new_count = 0;
    for (std::size_t i = begin; i < end; ++i) {
        if (edits[i].kind != Kind::insert) ++old_count;
        if (edits[i].kind != Kind::remove) ++new_count;
    }
    out += "@@ -" + range_of(old_line, old_count) + " +" + range_of(new_line, new_count) + " @@\n";
    for (std::size_t i = begin; i < end; ++i) {
        out += static_cast<char>(edits[i].kind);
        out += edits[i].line;
        if (!edits[i].line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
    }
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after,
                         std::string_view old_label, std::string_view new_label) {
    if (before == after) return {};
    std::vector<Edit> edits = edits_between(split(before), split(after));
    std::string out = "--- " + std::string(old_label) + "\n+++ " + std::string(new_label) + "\n";
    std::size_t old_line = 0;
    std::size_t new_line = 0;
    std::size_t at = 0;
    auto pass = [&](std::size_t until) {
        for (; at < until; ++at) {
            if (edits[at].kind != Kind::insert) ++old_line;
            if (edits[at].kind != Kind::remove) ++new_line;
        }
    };
    for (std::size_t i = 0; i < edits.size(); ++i) {
        if (edits[i].kind == Kind::keep) continue;
        std::size_t begin = i - std::min<std::size_t>(i - at, kContext);
        std::size_t last = i;
        // Changes with little between them share a hunk.
        for (std::size_t j = i + 1; j < edits.size() && j - last <= 2 * kContext; ++j) {
            if (edits[j].kind != Kind::keep) last = j;
        }
        std::size_t end = std::min(last + 1 + kContext, edits.size());
        pass(begin);
        append_hunk(out, edits, begin, end, old_line, new_line);
        pass(end);
        i = end - 1;
    }
    return out;
}

bool is_text(std::string_view bytes) {
    if (bytes.find('\0') != std::string_view::npos) return false;
    std::string quoted;
    append_json_string(quoted, bytes);
    // What is not UTF-8 was replaced, which the text itself hardly ever holds.
    constexpr std::string_view kReplacement = "\xef\xbf\xbd";
    return quoted.find(kReplacement) == std::string::npos ||
           bytes.find(kReplacement) != std::string_view::npos;
}

}  // namespace opensandbox::agent
