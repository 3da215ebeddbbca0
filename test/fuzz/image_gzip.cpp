// Compressed bytes in pieces; what comes out does not depend on how they are cut.
#include "image/gzip_input.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

using namespace opensandbox;

class Pieces final : public image::InputStream {
  public:
    Pieces(std::string_view text, std::size_t piece) : text_(text), piece_(piece) {}
    Result<std::size_t> read(std::span<char> into) override {
        std::size_t count = std::min({into.size(), piece_, text_.size()});
        std::memcpy(into.data(), text_.data(), count);
        text_.remove_prefix(count);
        return count;
    }

  private:
    std::string_view text_;
    std::size_t piece_;
};

/// Up to 1 MiB of it; empty when it is damaged.
std::optional<std::string> unpacked(std::string_view text, std::size_t piece) {
    image::GzipInput input(std::make_unique<Pieces>(text, piece));
    std::string all;
    std::string buffer(4096, '\0');
    while (all.size() < (std::size_t{1} << 20)) {
        auto count = input.read(buffer);
        if (!count) return std::nullopt;
        if (*count > buffer.size()) std::abort();
        if (*count == 0) return all;
        all.append(buffer, 0, *count);
    }
    return std::string();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    if (unpacked(text, 65536) != unpacked(text, 7)) std::abort();
    return 0;
}
