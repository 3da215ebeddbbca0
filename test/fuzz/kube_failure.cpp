#include "kube/api/failure.hpp"

#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox::kube;
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    (void)failure_of(400 + data[0], text);
    (void)failure_of_event(text);
    opensandbox::http::ResponseHead head(429);
    head.fields.set("Retry-After", std::string(text));
    (void)pause_before_repeat(head, Repeating::harmless);
    return 0;
}
