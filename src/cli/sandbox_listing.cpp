#include "cli/sandbox_listing.hpp"

namespace opensandbox::cli {

Awaitable<sdk::Result<std::vector<sdk::SandboxInfo>>> list_all(sdk::Connection connection,
                                                               sdk::ListFilter filter) {
    constexpr unsigned kLargestPage = 200;
    std::vector<sdk::SandboxInfo> all;
    sdk::Sandboxes sandboxes(connection);
    filter.page_size = kLargestPage;
    for (unsigned page = 1;; ++page) {
        filter.page = page;
        auto some = co_await sandboxes.list(filter);
        if (!some) co_return some.error();
        for (auto& item : some->items)
            all.push_back(std::move(item));
        if (!some->pagination.has_next_page) co_return all;
    }
}

}  // namespace opensandbox::cli
