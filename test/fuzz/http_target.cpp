// Percent decoding, queries and the router over arbitrary targets.
#include "http/access_path.hpp"
#include "http/message.hpp"
#include "http/router.hpp"

#include <cstdint>
#include <cstdlib>

using namespace opensandbox;

namespace {

http::Router make_router() {
    http::Router router;
    http::Handler nothing = [](http::Exchange&) -> Awaitable<void> { co_return; };
    router.add("GET", "/", nothing);
    router.add("GET", "/a", nothing);
    router.add("POST", "/a/{id}", nothing);
    router.add("GET", "/a/b", nothing);
    router.any("/a/{id}/proxy/{port}/{path...}", nothing);
    return router;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const http::Router router = make_router();
    std::string text(reinterpret_cast<const char*>(data), size);
    auto decoded = http::percent_decode(text);
    if (decoded && decoded->size() > text.size()) std::abort();
    if (http::percent_decode(http::percent_encode(text)) != text) std::abort();
    std::string target = text;
    std::string token = http::take_access_path(target);
    if (!token.empty() && !text.starts_with(http::access_path(token))) std::abort();
    http::RequestHead head("GET", text);
    http::Query query(head.query());
    for (const auto& [name, value] : query) {
        if (!query.get(name)) std::abort();
    }
    for (auto method : {"GET", "POST"}) {
        auto match = router.lookup(method, head.path());
        if (match.handler != nullptr && match.pattern.empty()) std::abort();
        if (match.handler != nullptr && !match.allowed.empty()) std::abort();
    }
    return 0;
}
