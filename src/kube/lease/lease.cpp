#include "kube/lease/lease.hpp"

#include "json/fields.hpp"
#include "kube/object/metadata.hpp"

namespace opensandbox::kube {
namespace {

/// Microseconds with all six digits, which is all that the API server reads there.
struct MicroTime {
    static auto read(const json::object& from, std::string_view name) {
        return json::Form<Timestamp>::read(from, name);
    }
    static json::value write(Timestamp time) {
        const bool whole = time.time_since_epoch().count() % 1'000'000 == 0;
        return json::value(to_rfc3339(whole ? time + std::chrono::microseconds(1) : time));
    }
};

struct WholeSeconds {
    static Result<std::optional<std::chrono::seconds>> read(const json::object& from,
                                                            std::string_view name) {
        auto found = json::Form<std::int32_t>::read(from, name);
        if (!found) return found.error();
        if (!*found) return std::optional<std::chrono::seconds>();
        return std::optional(std::chrono::seconds(**found));
    }
    static json::value write(std::chrono::seconds time) { return json::value(time.count()); }
};

constexpr auto kLeaseMembers = [](auto& walker, auto& lease) {
    walker.put(json::Field("holderIdentity").may_lack(), lease.holder);
    walker.put(json::Field("leaseDurationSeconds").may_lack(), lease.duration, WholeSeconds());
    walker.put(json::Field("acquireTime").may_lack(), lease.acquired, MicroTime());
    walker.put(json::Field("renewTime").may_lack(), lease.renewed, MicroTime());
    walker.put(json::Field("leaseTransitions").may_lack(), lease.transitions);
};

}  // namespace

Result<Lease> read_lease(const json::object& object) {
    auto metadata = read_metadata(object);
    if (!metadata) return metadata.error();
    const json::value* spec = json::find(object, "spec");
    if (!spec) return Lease{metadata->resource_version, {}, {}, {}, {}, 0};
    if (!spec->is_object()) return invalid("spec: must be an object");
    auto lease = json::read_fields<Lease>(spec->get_object(), kLeaseMembers);
    if (!lease) return lease.error().within("spec");
    lease->resource_version = std::move(metadata->resource_version);
    return lease;
}

json::object write_lease(const Lease& lease) {
    return json::write_fields(lease, kLeaseMembers);
}

}  // namespace opensandbox::kube
