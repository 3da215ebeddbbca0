#include "agent/files/range.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

using namespace opensandbox::agent;

/// Any Range header stays inside the file; any date parses or does not; lines are cut the same
/// whatever the pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3) return 0;
    std::uint64_t file = data[0] * std::uint64_t{data[1]};
    std::string_view text(reinterpret_cast<const char*>(data) + 3, size - 3);
    ByteRange range = parse_range(text, file);
    if (range.kind == ByteRange::Kind::part &&
        (range.length == 0 || range.first >= file || range.length > file - range.first)) {
        std::abort();
    }
    if (auto date = parse_http_date(text)) (void)to_http_date(*date);
    std::string whole;
    std::string pieces;
    LineWindow once(1 + data[2] % 4, 1 + data[1] % 5);
    LineWindow often(1 + data[2] % 4, 1 + data[1] % 5);
    once.feed(text, whole);
    for (std::size_t at = 0; at < text.size(); at += 3)
        often.feed(text.substr(at, 3), pieces);
    if (whole != pieces) std::abort();
    return 0;
}
