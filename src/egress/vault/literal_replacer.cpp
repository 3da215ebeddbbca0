#include "egress/vault/literal_replacer.hpp"

#include <algorithm>

namespace opensandbox::egress {

LiteralReplacements::~LiteralReplacements() {
    for (Pair& pair : pairs_) {
        wipe(pair.from);
        wipe(pair.to);
    }
}

void LiteralReplacements::add(std::string from, std::string to) {
    if (std::ranges::find(pairs_, from, &Pair::from) == pairs_.end()) {
        begins_[static_cast<unsigned char>(from.front())] = true;
        longest_ = std::max(longest_, from.size());
        const auto place = std::ranges::find_if(
            pairs_, [&](const Pair& pair) { return pair.from.size() < from.size(); });
        Pair& pair = *pairs_.emplace(place);
        pair.from = std::move(from);
        pair.to = std::move(to);
    }
    wipe(from);
    wipe(to);
}

const LiteralReplacements::Pair* LiteralReplacements::at(std::string_view text) const {
    for (const Pair& pair : pairs_) {
        if (text.starts_with(pair.from)) return &pair;
    }
    return nullptr;
}

std::size_t LiteralReplacements::replace(std::string_view text, std::string& out) const {
    std::size_t count = 0;
    std::size_t copied = 0;
    for (std::size_t i = 0; i < text.size();) {
        const Pair* found = nullptr;
        if (begins_[static_cast<unsigned char>(text[i])]) found = at(text.substr(i));
        if (!found) {
            ++i;
            continue;
        }
        out.append(text, copied, i - copied).append(found->to);
        i += found->from.size();
        copied = i;
        ++count;
    }
    out.append(text, copied);
    return count;
}

bool LiteralReplacements::may_go_on(std::string_view text) const {
    return std::ranges::any_of(pairs_, [text](const Pair& pair) {
        return pair.from.size() > text.size() && pair.from.starts_with(text);
    });
}

std::size_t LiteralReplacements::replace_part(std::string_view text, std::string& out) const {
    std::size_t copied = 0;
    std::size_t i = 0;
    while (i < text.size()) {
        if (!begins_[static_cast<unsigned char>(text[i])]) {
            ++i;
            continue;
        }
        const std::string_view rest = text.substr(i);
        if (rest.size() < longest_ && may_go_on(rest)) break;
        const Pair* found = at(rest);
        if (!found) {
            ++i;
            continue;
        }
        out.append(text, copied, i - copied).append(found->to);
        i += found->from.size();
        copied = i;
    }
    out.append(text, copied, i - copied);
    return i;
}

void StreamReplacer::feed(std::string_view piece, std::string& out) {
    if (replacements_->empty()) {
        out.append(piece);
        return;
    }
    if (held_.empty()) {
        const std::size_t used = replacements_->replace_part(piece, out);
        held_ = piece.substr(used);
        return;
    }
    held_.append(piece);
    const std::size_t used = replacements_->replace_part(held_, out);
    held_.erase(0, used);
}

void StreamReplacer::finish(std::string& out) {
    (void)replacements_->replace(held_, out);
    wipe(held_);
}

}  // namespace opensandbox::egress
