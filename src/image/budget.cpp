#include "image/budget.hpp"

#include <algorithm>
#include <limits>

namespace opensandbox::image {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
/// Small archives may be packed as densely as they like.
constexpr std::uint64_t kRatioFree = 64ULL << 20;
/// What the headers of one entry may take in a tar stream beside its data.
constexpr std::uint64_t kHeaderRoom = 4096;

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
    return a > kUnlimited - b ? kUnlimited : a + b;
}

std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) {
    return b != 0 && a > kUnlimited / b ? kUnlimited : a * b;
}

}  // namespace

bool ImportBudget::past_ratio(std::uint64_t bytes) const {
    return bytes > kRatioFree &&
           bytes - kRatioFree > saturating_multiply(packed_, limits_.max_ratio);
}

Status ImportBudget::add_stream(Stage stage, std::uint64_t bytes, std::uint64_t costly) {
    Stream& total = stage == Stage::archive ? archive_ : layers_;
    total.bytes = saturating_add(total.bytes, bytes);
    total.costly = saturating_add(total.costly, costly);
    std::uint64_t most =
        saturating_add(limits_.max_unpacked, saturating_multiply(limits_.max_entries, kHeaderRoom));
    if (total.bytes > most) {
        return Error(ErrorCode::too_large, "the archive unpacks to more than " +
                                               std::to_string(limits_.max_unpacked) + " bytes");
    }
    std::uint64_t counted = total.bytes;
    if (stage == Stage::layers) {
        const std::uint64_t accounted =
            saturating_add(unpacked_, saturating_multiply(entries_, kHeaderRoom));
        const std::uint64_t beside = total.bytes > accounted ? total.bytes - accounted : 0;
        counted = std::max(total.costly, beside);
    }
    if (past_ratio(counted)) {
        return Error(ErrorCode::too_large, "the archive unpacks to more than " +
                                               std::to_string(limits_.max_ratio) +
                                               " times its own size");
    }
    return {};
}

Status ImportBudget::add_entry(std::string_view name, std::uint64_t apparent_size) {
    if (++entries_ > limits_.max_entries) {
        return Error(ErrorCode::too_large, "entry " + in_quotes(name) +
                                               ": the archive holds more than " +
                                               std::to_string(limits_.max_entries) + " entries");
    }
    unpacked_ = saturating_add(unpacked_, apparent_size);
    if (unpacked_ > limits_.max_unpacked) {
        return Error(ErrorCode::too_large,
                     "entry " + in_quotes(name) + ": the files are larger than " +
                         std::to_string(limits_.max_unpacked) + " bytes together");
    }
    return {};
}

void ImportBudget::restart_layers() {
    layers_ = Stream();
    unpacked_ = 0;
    entries_ = 0;
}

std::string in_quotes(std::string_view name) {
    constexpr std::size_t kLongest = 200;
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text = "\"";
    for (char c : name.substr(0, kLongest)) {
        auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\') {
            text += "\\x";
            text += kDigits[byte >> 4];
            text += kDigits[byte & 15];
        } else {
            text += c;
        }
    }
    if (name.size() > kLongest) text += "...";
    return text + "\"";
}

}  // namespace opensandbox::image
