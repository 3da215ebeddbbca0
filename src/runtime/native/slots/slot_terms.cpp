#include "runtime/native/slots/slot_terms.hpp"

#include "runtime/native/slots/broker_maker.hpp"

namespace opensandbox::runtime::native {

SlotTerms slot_terms(const Host& host, SlotId slot) {
    SlotTerms out;
    if (host.network()) {
        out.address = host.address(slot).to_string();
        out.gateway = host.gateway().to_string();
    }
    if (const auto six = host.address6(slot)) {
        out.address6 = six->to_string();
        out.gateway6 = host.gateway6().to_string();
    }
    out.ipv6_links = host.ipv6_links;
    out.resolver = host.resolver;
    out.gvisor = host.gvisor();
    out.brokers = has_brokers(host);
    const bool rootless = host.options.rootless;
    out.memory_by_process = rootless && !host.cgroups.limits("memory");
    out.processes_by_user = rootless && !host.cgroups.limits("pids");
    out.filter = host.filter;
    return out;
}

}  // namespace opensandbox::runtime::native
