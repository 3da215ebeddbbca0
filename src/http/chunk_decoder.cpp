#include "http/chunk_decoder.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::http {
namespace {

constexpr std::size_t kMaxSizeLine = 4096;
constexpr std::size_t kMaxTrailers = 16 * 1024;
constexpr std::size_t kMaxSizeDigits = 15;

enum class Line : std::uint8_t { complete, incomplete, malformed };

/// Finds the CRLF that ends the line at `from`; bare CR or LF and NUL are malformed.
Line find_line(std::string_view bytes, std::size_t from, std::size_t limit, std::size_t& end) {
    for (std::size_t i = from; i < bytes.size(); ++i) {
        if (i - from > limit) return Line::malformed;
        char c = bytes[i];
        if (c == '\n' || c == '\0') return Line::malformed;
        if (c != '\r') continue;
        if (i + 1 == bytes.size()) return Line::incomplete;
        if (bytes[i + 1] != '\n') return Line::malformed;
        end = i;
        return Line::complete;
    }
    return Line::incomplete;
}

}  // namespace

bool ChunkDecoder::read_size(std::string_view line) {
    std::string_view digits = line.substr(0, line.find_first_not_of("0123456789abcdefABCDEF"));
    std::string_view rest = line.substr(digits.size());
    if (digits.empty() || digits.size() > kMaxSizeDigits) return false;
    // Blanks before an extension are allowed by the grammar ("bad whitespace"), not before CRLF.
    if (!rest.empty()) {
        auto mark = rest.find_first_not_of(" \t");
        if (mark == std::string_view::npos || rest[mark] != ';') return false;
    }
    std::from_chars(digits.data(), digits.data() + digits.size(), remaining_, 16);
    return true;
}

void ChunkDecoder::take(std::uint64_t count) {
    remaining_ -= count;
    if (remaining_ == 0) expect_ = Expect::data_end;
}

ChunkDecoder::Step ChunkDecoder::next(std::string_view bytes) {
    std::size_t used = 0;
    std::size_t end = 0;
    while (true) {
        switch (expect_) {
            case Expect::data: return {State::data, used};
            case Expect::end: return {State::done, used};
            case Expect::data_end:
                if (bytes.size() - used < 2) {
                    bool possible = bytes.size() == used || bytes[used] == '\r';
                    return {possible ? State::need_more : State::malformed, used};
                }
                if (bytes.substr(used, 2) != "\r\n") return {State::malformed, used};
                used += 2;
                expect_ = Expect::size_line;
                break;
            case Expect::size_line: {
                Line line = find_line(bytes, used, kMaxSizeLine, end);
                if (line == Line::incomplete) return {State::need_more, used};
                if (line == Line::malformed || !read_size(bytes.substr(used, end - used))) {
                    return {State::malformed, used};
                }
                used = end + 2;
                expect_ = remaining_ > 0 ? Expect::data : Expect::trailer;
                break;
            }
            case Expect::trailer: {
                std::size_t left = kMaxTrailers - std::min(kMaxTrailers, trailers_.size());
                Line line = find_line(bytes, used, left, end);
                if (line == Line::incomplete) return {State::need_more, used};
                if (line == Line::malformed || end - used > left) return {State::malformed, used};
                if (end == used) {
                    expect_ = Expect::end;
                } else {
                    trailers_ += bytes.substr(used, end + 2 - used);
                }
                used = end + 2;
                break;
            }
        }
    }
}

}  // namespace opensandbox::http
