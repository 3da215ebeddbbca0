#include "kube/object/strategic_merge.hpp"

#include <cstdint>
#include <string_view>

/// The object, a NUL, and the patch.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::size_t end = text.find('\0');
    if (end == std::string_view::npos) return 0;
    auto target = json::parse(text.substr(0, end));
    auto patch = json::parse(text.substr(end + 1));
    if (!target || !patch || !target->is_object()) return 0;
    for (auto schema : {kube::PatchSchema::none, kube::PatchSchema::pod, kube::PatchSchema::task}) {
        (void)kube::strategic_merge(target->get_object(), *patch, schema);
    }
    return 0;
}
