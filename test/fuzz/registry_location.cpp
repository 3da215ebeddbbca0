#include "registry/location.hpp"
#include "registry/wire.hpp"

#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any Location of an answer is a place that may be asked, and never without TLS where the registry
/// was asked with it; any name of a registry is a place or none.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    static asio::io_context context(1);
    static const registry::Wire wire(context.get_executor(), registry::RegistryOptions());
    static const registry::Target from = [] {
        registry::Location location;
        location.host = "registry.example";
        registry::Target target;
        target.origin = wire.origin(location, true);
        target.target = "/v2/x/blobs/uploads/";
        return target;
    }();
    std::string_view text(reinterpret_cast<const char*>(data), size);
    auto to = wire.resolve(text, from);
    if (to) {
        if (to->origin.host.empty() || !to->target.starts_with('/')) std::abort();
        if (to->target.find_first_of("\r\n") != std::string::npos) std::abort();
        if (to->same_origin(from) && !to->origin.tls) std::abort();
    } else if (to.error().message().empty()) {
        std::abort();
    }
    auto named = registry::locate_registry(text);
    if (named && named->host.empty()) std::abort();
    return 0;
}
