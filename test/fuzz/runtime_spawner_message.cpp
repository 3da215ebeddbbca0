#include "runtime/native/records/protocol.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// Messages between server, spawner, workers and slots: whatever decodes encodes to the same bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox::runtime::native;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const auto message = decode(bytes);
    if (message && encode(*message) != bytes) std::abort();
    return 0;
}
