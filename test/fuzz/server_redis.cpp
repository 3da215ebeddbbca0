#include "redis/client.hpp"
#include "redis/resp.hpp"
#include "server/renew/intent_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

/// Any bytes are a reply of Redis, the beginning of one, or an error; and so with intents.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    auto parsed = redis::resp::parse(text);
    if (parsed && *parsed && ((*parsed)->used == 0 || (*parsed)->used > size)) std::abort();
    if (auto intent = server::parse_renew_intent(text, Timestamp())) {
        if (intent->sandbox_id.empty()) std::abort();
    }
    if (auto address = redis::parse_url(text)) {
        if (address->host.empty() || address->port == 0) std::abort();
    }
    return 0;
}
