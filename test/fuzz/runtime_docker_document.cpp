#include "runtime/docker/engine/decode.hpp"
#include "runtime/docker/engine/failure.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    using namespace opensandbox::runtime::docker;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    if (error_of_status(500, text).message().size() > 2000) std::abort();
    auto document = json::parse(text);
    if (!document) return 0;
    (void)decode_version(*document);
    (void)decode_info(*document);
    (void)decode_image(*document);
    (void)decode_image_list(*document);
    (void)decode_container_list(*document);
    (void)decode_created(*document);
    (void)decode_stats(*document);
    (void)decode_volume(*document);
    (void)decode_volume_list(*document);
    (void)decode_network(*document);
    (void)decode_container(std::move(*document));
    return 0;
}
