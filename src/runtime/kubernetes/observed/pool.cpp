#include "runtime/kubernetes/observed/pool.hpp"

#include "json/fields.hpp"
#include "model/task.hpp"
#include "runtime/kubernetes/expansion.hpp"
#include "runtime/kubernetes/names.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::runtime::kubernetes {
namespace {

constexpr std::int64_t kWhole = 100;

constexpr auto kCapacityMembers = [](auto& walker, auto& capacity) {
    walker.put("bufferMin", capacity.buffer_min);
    walker.put("bufferMax", capacity.buffer_max);
    walker.put("poolMin", capacity.pool_min);
    walker.put("poolMax", capacity.pool_max);
};

constexpr auto kFigureMembers = [](auto& walker, auto& figures) {
    walker.put(json::Field("observedGeneration").may_lack(), figures.observed_generation);
    walker.put(json::Field("revision").may_lack(), figures.revision);
    walker.put(json::Field("total").may_lack(), figures.total);
    walker.put(json::Field("allocated").may_lack(), figures.allocated);
    walker.put(json::Field("available").may_lack(), figures.available);
    walker.put(json::Field("updated").may_lack(), figures.updated);
};

Result<Share> read_share(const json::object& spec, std::string_view strategy) {
    Share share;
    const json::value* found = json::find(spec, strategy);
    if (!found) return share;
    if (!found->is_object()) return invalid(std::string(strategy) + ": must be an object");
    const json::value* most = json::find(found->get_object(), "maxUnavailable");
    if (!most) return share;
    const std::string name = std::string(strategy) + ".maxUnavailable";
    if (most->is_int64()) {
        share.amount = most->get_int64();
        share.percent = false;
        return share;
    }
    if (!most->is_string()) return invalid(name + ": must be a count or a percentage");
    std::string_view text = most->get_string();
    if (!text.ends_with('%')) return invalid(name + ": must be a count or a percentage");
    text.remove_suffix(1);
    const auto [end, problem] =
        std::from_chars(text.data(), text.data() + text.size(), share.amount);
    if (problem != std::errc() || end != text.data() + text.size())
        return invalid(name + ": must be a count or a percentage");
    return share;
}

Status read_pool_spec(const json::object& spec, Pool& pool) {
    if (const json::value* pod = json::find(spec, "template")) pool.pod_template = *pod;
    const json::value* capacity = json::find(spec, "capacitySpec");
    if (!capacity || !capacity->is_object()) return invalid("capacitySpec: must be an object");
    auto read = json::read_fields<model::PoolCapacity>(capacity->get_object(), kCapacityMembers);
    if (!read) return read.error().within("capacitySpec");
    pool.capacity = *read;
    auto scale = read_share(spec, "scaleStrategy");
    auto update = read_share(spec, "updateStrategy");
    if (!scale) return scale.error();
    if (!update) return update.error();
    pool.scale = *scale;
    pool.update = *update;
    return {};
}

}  // namespace

std::int64_t Share::of(std::int64_t all) const {
    const std::int64_t count = percent ? (all * amount + kWhole - 1) / kWhole : amount;
    return std::max<std::int64_t>(count, 1);
}

Result<Pool> read_pool(const json::object& object) {
    auto metadata = kube::read_metadata(object);
    if (!metadata) return metadata.error();
    Pool pool;
    pool.metadata = std::move(*metadata);
    const json::value* spec = json::find(object, "spec");
    if (!spec || !spec->is_object()) return invalid("spec: must be an object");
    if (auto read = read_pool_spec(spec->get_object(), pool); !read)
        return read.error().within("spec");
    if (const json::value* status = json::find(object, "status")) {
        if (!status->is_object()) return invalid("status: must be an object");
        auto figures = json::read_fields<PoolFigures>(status->get_object(), kFigureMembers);
        if (!figures) return figures.error().within("status");
        pool.status = std::move(*figures);
    }
    return pool;
}

json::object write_pool_status(const PoolFigures& figures) {
    return json::write_fields(figures, kFigureMembers);
}

std::string task_token_of(const Pool& pool) {
    boost::system::error_code missing;
    const json::value* list = pool.pod_template.find_pointer("/spec/containers", missing);
    if (!list || !list->is_array()) return {};
    for (const json::value& container : list->get_array()) {
        const json::value* env = container.find_pointer("/env", missing);
        if (!env || !env->is_array()) continue;
        for (const json::value& entry : env->get_array()) {
            const json::value* name = entry.find_pointer("/name", missing);
            const json::value* value = entry.find_pointer("/value", missing);
            if (name && value && name->is_string() && value->is_string() &&
                name->get_string() == model::kTaskTokenVariable) {
                return expanded(value->get_string());
            }
        }
    }
    return {};
}

}  // namespace opensandbox::runtime::kubernetes
