#include "runtime/native/ground/confinement/cgroup.hpp"
#include "runtime/native/ground/layer/layer_image.hpp"
#include "runtime/native/network/link_counters.hpp"
#include "runtime/native/records/names.hpp"
#include "runtime/native/server/readings.hpp"

#include <sstream>

namespace opensandbox::runtime::native {

std::vector<SandboxUsage> measure_slots(const std::filesystem::path& state_directory,
                                        std::string_view slots) {
    std::vector<SandboxUsage> out;
    const std::string tag = tag_of(state_directory);
    auto tree = CgroupTree::find(cgroup_group(tag));
    if (!tree) return out;
    std::istringstream lines{std::string(slots)};
    SandboxUsage item;
    for (std::uint32_t serial = 0; lines >> item.id >> serial;) {
        const SlotId slot{serial, 0};
        item.usage = SlotCgroup::adopt(*tree, slot_name(slot)).usage();
        const LinkCounters link = link_counters(link_prefix(tag) + slot_name(slot).substr(1));
        // Its network is the first that goes.
        if (!link.received) continue;
        item.usage.received_bytes = link.received;
        item.usage.sent_bytes = link.sent;
        item.usage.disk_bytes = layer_usage(state_directory / "sandboxes" / slot_name(slot));
        out.push_back(item);
    }
    return out;
}

}  // namespace opensandbox::runtime::native
