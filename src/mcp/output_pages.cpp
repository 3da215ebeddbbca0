#include "mcp/output_pages.hpp"

#include "base/json_string.hpp"

#include <algorithm>

namespace opensandbox::mcp {

namespace {

constexpr std::size_t kLongestCharacter = 4;

bool continues(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// What stands for a byte sequence that is no UTF-8.
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Length of the well-formed character at the begin, 0 when there is none.
std::size_t character_at(std::string_view bytes) {
    std::size_t length = 1;
    while (length < std::min(kLongestCharacter, bytes.size()) && continues(bytes[length]))
        ++length;
    for (std::size_t size = length; size > 0; --size) {
        if (is_utf8(bytes.substr(0, size))) return size;
    }
    return 0;
}

}  // namespace

std::size_t fitting(std::string_view bytes, std::size_t limit) {
    if (bytes.size() <= limit) return bytes.size();
    std::size_t end = limit;
    while (end > 0 && limit - end < kLongestCharacter && continues(bytes[end]))
        --end;
    // Bytes that only continue are no text: they are cut anywhere.
    if (continues(bytes[end])) return std::max<std::size_t>(limit, 1);
    if (end > 0) return end;
    end = 1;
    while (end < bytes.size() && end < kLongestCharacter && continues(bytes[end]))
        ++end;
    return end;
}

Page page_of(std::string_view bytes, std::uint64_t from, std::size_t limit) {
    Page page;
    if (from >= bytes.size()) return page;
    const std::string_view rest = bytes.substr(from);
    const std::size_t size = fitting(rest, limit);
    page.text = rest.substr(0, size);
    if (size < rest.size()) page.next = from + size;
    return page;
}

std::string as_text(std::string bytes) {
    if (is_utf8(bytes)) return bytes;
    std::string out;
    std::string_view rest = bytes;
    while (!rest.empty()) {
        const std::size_t size = character_at(rest);
        out += size == 0 ? kReplacement : rest.substr(0, size);
        rest.remove_prefix(std::max<std::size_t>(size, 1));
    }
    return out;
}

void KeptOutputs::keep(std::string sandbox_id, std::string execution_id, std::string output,
                       std::string errors) {
    // Runs of one code context have one id: the last one's output is what is asked for.
    std::erase_if(kept_, [&](const Kept& kept) {
        const bool same = kept.sandbox_id == sandbox_id && kept.execution_id == execution_id;
        if (same) size_ -= kept.output.size() + kept.errors.size();
        return same;
    });
    size_ += output.size() + errors.size();
    kept_.push_back(
        Kept{std::move(sandbox_id), std::move(execution_id), std::move(output), std::move(errors)});
    while (size_ > total_ && kept_.size() > 1) {
        size_ -= kept_.front().output.size() + kept_.front().errors.size();
        kept_.pop_front();
    }
}

const std::string* KeptOutputs::find(std::string_view sandbox_id, std::string_view execution_id,
                                     OutputStream which) const {
    auto found = std::ranges::find_if(kept_, [&](const Kept& kept) {
        return kept.sandbox_id == sandbox_id && kept.execution_id == execution_id;
    });
    if (found == kept_.end()) return nullptr;
    return which == OutputStream::standard ? &found->output : &found->errors;
}

}  // namespace opensandbox::mcp
