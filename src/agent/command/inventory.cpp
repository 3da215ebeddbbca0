#include "agent/command/inventory.hpp"

#include "base/json_string.hpp"
#include "http/message.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::agent {
namespace {

constexpr std::string_view kInvalidQuery = "INVALID_QUERY";

Error refused(std::string_view name, std::string_view rule) {
    return {ErrorCode::invalid_argument, std::string(kInvalidQuery),
            std::string(name) + ": " + std::string(rule)};
}

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(value) : std::nullopt;
}

std::optional<Error> take(std::string_view name, std::string_view value, InventoryQuery& query) {
    if (name == "running") {
        if (value != "true" && value != "false") return refused(name, "must be true or false");
        query.running = value == "true";
    } else if (name == "limit") {
        std::uint64_t limit = number(value).value_or(0);
        if (limit < 1 || limit > InventoryQuery::kMostItems) {
            return refused(name, "must be from 1 to " + std::to_string(InventoryQuery::kMostItems));
        }
        query.limit = static_cast<std::size_t>(limit);
    } else if (name == "cursor") {
        query.before = number(value);
        if (!query.before) return refused(name, "must be a nextCursor of this listing");
    } else {
        return refused(name, "is not known here; running, limit and cursor are");
    }
    return std::nullopt;
}

}  // namespace

Result<InventoryQuery> parse_inventory_query(std::string_view raw_query) {
    InventoryQuery query;
    const http::Query given(raw_query);
    for (const auto& [name, value] : given) {
        if (given.all(name).size() > 1) return refused(name, "is given more than once");
        if (value.empty()) return refused(name, "must not be empty");
        if (auto error = take(name, value, query)) return std::move(*error);
    }
    return query;
}

std::string inventory_json(const CommandRegistry& registry, const InventoryQuery& query) {
    std::string out = R"({"commands":[)";
    std::size_t listed = 0;
    std::uint64_t last = 0;
    bool more = false;
    registry.each_latest_first(query.before, [&](const CommandRecord& record) {
        if (query.running && *query.running != record.running()) return true;
        more = listed == query.limit;
        if (more) return false;
        if (listed++ > 0) out += ',';
        record.append_inventory_item(out);
        last = record.number;
        return true;
    });
    out += R"(],"pagination":{"limit":)";
    append_integer(out, static_cast<std::int64_t>(query.limit));
    if (more) out += R"(,"nextCursor":")" + std::to_string(last) + '"';
    return out += "}}";
}

}  // namespace opensandbox::agent
