#include "kube/watch/event.hpp"
#include "kube/watch/frame_splitter.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>

/// The first byte says where the stream is cut in two. Where it is cut must not change what comes
/// out, and what is selected of an event is part of the event.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox::kube;
    if (size == 0) return 0;
    const std::string stream(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::size_t cut = data[0] % (stream.size() + 1);
    static const opensandbox::json::Selection selection(
        {"type", "object.metadata.name", "object.metadata.resourceVersion",
         "object.metadata.annotations", "object.status.conditions.type"});
    std::string whole;
    std::string pieces;
    FrameSplitter once;
    if (!once.feed(stream)) return 0;
    while (auto line = once.next()) {
        whole += std::string(*line) + "\n";
        const auto all = read_event(*line, nullptr);
        const auto some = read_event(*line, &selection);
        if (all && some && all->resource_version != some->resource_version) std::abort();
    }
    FrameSplitter twice;
    for (const std::string& piece : {stream.substr(0, cut), stream.substr(cut)}) {
        if (!twice.feed(piece)) std::abort();
        while (auto line = twice.next())
            pieces += std::string(*line) + "\n";
    }
    if (whole != pieces) std::abort();
    return 0;
}
