#include "json/selection.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

using namespace opensandbox;

/// What remains of a document that was built as a whole.
json::value pruned(const json::value& from, const json::Selection& selection) {
    if (selection.all()) return from;
    if (const json::array* items = from.if_array()) {
        json::array kept;
        for (const json::value& item : *items)
            kept.push_back(pruned(item, selection));
        return kept;
    }
    const json::object* members = from.if_object();
    if (!members) return from;
    json::object kept;
    for (const auto& [name, member] : *members) {
        if (const json::Selection* below = selection.below(name))
            kept.emplace(name, pruned(member, *below));
    }
    return kept;
}

}  // namespace

/// A document is read in parts as it is as a whole, and refused for the same reason.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::array<json::Selection, 4> selections{
        json::Selection({"a"}), json::Selection({"a.b", "b.a.b", "c"}),
        json::Selection({"items.metadata.name", "items.status", "metadata", "a.a.a"}),
        json::Selection({})};
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    auto whole = json::parse(text);
    for (const json::Selection& selection : selections) {
        auto selected = json::parse_selected(text, selection);
        if (selected.has_value() != whole.has_value()) std::abort();
        if (whole && *selected != pruned(*whole, selection)) std::abort();
        if (!whole && selected.error().message() != whole.error().message()) std::abort();
    }
    return 0;
}
