#include "lifecycle/admission_checks.hpp"
#include "model/resource_limits.hpp"

namespace opensandbox::lifecycle {
namespace {

using model::LimitRow;
using runtime::ResourceLimits;

/// "ephemeral-storage, storage and disk"
std::string names_text(const LimitRow& row) {
    std::string text(row.names.front());
    for (std::size_t i = 1; i < row.names.size() && !row.names[i].empty(); ++i) {
        const bool last = i + 1 == row.names.size() || row.names[i + 1].empty();
        text += (last ? " and " : ", ") + std::string(row.names[i]);
    }
    return text;
}

/// One limit, under any of its names.
Status read_limit(const model::StringMap& wanted, const LimitRow& row, ResourceLimits& limits) {
    std::uint64_t& into = limits.*row.member;
    for (const std::string_view name : row.names) {
        const std::string* text = name.empty() ? nullptr : find_value(wanted, name);
        if (!text) continue;
        const auto value = model::parse_memory(*text);
        const std::string field = "Invalid resourceLimits." + std::string(name) + ": '";
        if (!value || *value < row.least || *value > row.most)
            return invalid_parameter(field + *text + "'; must be " + model::range_text(row) + ".");
        if (into != 0 && into != *value) {
            return invalid_parameter(field + *text + "'; " + names_text(row) +
                                     " are one limit and must not differ.");
        }
        into = *value;
    }
    return {};
}

}  // namespace

Status check_fine_limits(const model::StringMap& wanted, const AdmissionRules& rules,
                         ResourceLimits& limits) {
    if (!rules.capabilities.fine_limits) return {};
    for (const LimitRow& row : model::kLimits) {
        if (!row.fine) continue;
        if (auto read = read_limit(wanted, row, limits); !read) return read;
    }
    return {};
}

}  // namespace opensandbox::lifecycle
