#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::lifecycle {

/// One page of a list (lifecycle 1.4).
struct Page {
    std::int64_t number = 1;
    std::int64_t size = 20;
};

/// `"pagination":{…}` for that page of `total` items.
inline std::string pagination_json(const Page& page, std::int64_t total) {
    std::int64_t pages = (total + page.size - 1) / page.size;
    return "\"pagination\":{\"page\":" + std::to_string(page.number) +
           ",\"pageSize\":" + std::to_string(page.size) +
           ",\"totalItems\":" + std::to_string(total) + ",\"totalPages\":" + std::to_string(pages) +
           ",\"hasNextPage\":" + (page.number < pages ? "true" : "false") + "}";
}

/// How many items come before that page; cut to `total`, so that it cannot overflow.
inline std::int64_t items_before(const Page& page, std::int64_t total) {
    return page.number - 1 > total ? total : (page.number - 1) * page.size;
}

/// Whether what belongs to `owner` is shown to `asking`. Where there is one tenant nobody is named
/// and everything is shown.
inline bool is_shown_to(std::string_view asking, std::string_view owner) {
    return asking.empty() || asking == owner;
}

}  // namespace opensandbox::lifecycle
