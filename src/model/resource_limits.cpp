#include "model/resource_limits.hpp"

namespace opensandbox::model {
namespace {

std::string_view kind_of(LimitUnit unit) {
    switch (unit) {
        case LimitUnit::count: return "a count";
        case LimitUnit::bytes: return "a size";
        case LimitUnit::bytes_a_second: return "bytes a second";
    }
    return {};
}

}  // namespace

std::string limit_text(const LimitRow& row, std::uint64_t amount) {
    constexpr std::array<std::string_view, 5> kPrefixes{"", "Ki", "Mi", "Gi", "Ti"};
    constexpr std::uint64_t kStep = 1024;
    std::size_t at = 0;
    if (row.unit != LimitUnit::count) {
        for (; amount != 0 && amount % kStep == 0 && at + 1 < kPrefixes.size(); ++at)
            amount /= kStep;
    }
    return std::to_string(amount) + std::string(kPrefixes[at]);
}

std::string range_text(const LimitRow& row) {
    return std::string(kind_of(row.unit)) + " from " + limit_text(row, row.least) + " to " +
           limit_text(row, row.most);
}

}  // namespace opensandbox::model
