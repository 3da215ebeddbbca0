#include "server/list_query.hpp"

#include "http/message.hpp"
#include "server/query_number.hpp"

namespace opensandbox::server {
namespace {

constexpr std::int64_t kMaxPageSize = 200;

std::string decode(std::string_view text) {
    return http::percent_decode(text, true).value_or(std::string(text));
}

}  // namespace

Result<model::StringMap> parse_metadata_filter(std::string_view text) {
    model::StringMap filter;
    while (!text.empty()) {
        auto end = text.find('&');
        std::string_view part = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
        if (part.empty()) continue;
        auto equals = part.find('=');
        if (equals == std::string_view::npos) {
            return Error(ErrorCode::invalid_argument, "INVALID_METADATA_FORMAT",
                         "Invalid metadata format: '" + std::string(part) + "' must be key=value.");
        }
        filter.emplace_back(decode(part.substr(0, equals)), decode(part.substr(equals + 1)));
    }
    return filter;
}

std::variant<lifecycle::ListQuery, ListQueryError> parse_list_query(std::string_view raw_query) {
    http::Query query(raw_query);
    lifecycle::ListQuery list;
    model::FieldErrors errors;
    read_number(query, "page", INT64_MAX, list.page, errors);
    read_number(query, "pageSize", kMaxPageSize, list.page_size, errors);
    if (!errors.empty()) return ListQueryError(std::move(errors));

    auto states = query.all("state");
    if (!states.empty()) list.states.emplace();
    for (std::string_view text : states) {
        // A state that does not exist here matches no sandbox.
        if (auto state = model::parse_state(text)) list.states->push_back(*state);
    }
    if (auto metadata = query.get("metadata")) {
        auto filter = parse_metadata_filter(*metadata);
        if (!filter) return ListQueryError(filter.error());
        list.metadata = std::move(filter.value());
    }
    return list;
}

}  // namespace opensandbox::server
