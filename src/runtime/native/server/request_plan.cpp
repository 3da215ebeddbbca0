#include "runtime/native/server/request_plan.hpp"

#include "base/digest.hpp"
#include "base/log.hpp"
#include "egress/settings/names.hpp"
#include "model/hook_plan.hpp"
#include "model/lifecycle_hooks.hpp"
#include "model/resource_quantity.hpp"
#include "model/warm_program.hpp"
#include "runtime/bucket_command.hpp"
#include "runtime/host_volume.hpp"
#include "runtime/native/server/egress_plan.hpp"

#include <algorithm>

namespace opensandbox::runtime::native {

namespace {

constexpr std::size_t kMaxVolumes = 32;
/// Of an image: programs that its slots start ahead.
constexpr const char* kWarmLabel = "opensandbox.io/warm";

/// The image's variables, those of the request over them.
Environment merge(Environment base, const Environment& over) {
    for (const auto& [name, value] : over) {
        const auto found = std::ranges::find_if(
            base, [&](const auto& variable) { return variable.first == name; });
        if (found == base.end())
            base.emplace_back(name, value);
        else
            found->second = value;
    }
    return base;
}

/// What the agent and the programs inside learn of their sandbox (execd 11): where set-env keeps
/// its file, which sandbox this is, and its limits, since control groups cannot be seen from
/// inside.
Environment sandbox_environment(const SandboxSpec& spec) {
    Environment known{{"EXECD_ENVS", "/opt/opensandbox/.env"}, {"OPENSANDBOX_ID", spec.id}};
    if (spec.limits.memory_bytes != 0) {
        known.emplace_back("OPENSANDBOX_MEMORY_LIMIT_BYTES",
                           std::to_string(spec.limits.memory_bytes));
    }
    if (spec.limits.cpu_cores > 0) {
        known.emplace_back("OPENSANDBOX_CPU_LIMIT", std::to_string(spec.limits.cpu_cores));
    }
    return known;
}

ImageOrigin origin_of(const std::string& reference, image::Rootfs rootfs) {
    ImageOrigin origin;
    origin.reference = reference;
    origin.digest = std::move(rootfs.digest);
    for (const auto& layer : rootfs.layers)
        origin.layers.push_back(layer.string());
    origin.usr = rootfs.usr.string();
    origin.config = std::move(rootfs.config);
    return origin;
}

Result<ImageOrigin> resolve_image(image::Store& images, const std::string& reference) {
    auto rootfs = images.resolve(reference);
    if (!rootfs) return rootfs.error();
    return origin_of(reference, std::move(*rootfs));
}

const std::string* find_value(const model::StringMap& map, std::string_view name) {
    const auto found =
        std::ranges::find_if(map, [&](const auto& item) { return item.first == name; });
    return found == map.end() ? nullptr : &found->second;
}

Error bad_request(std::string_view key, const std::string& value, std::string_view rule) {
    return {
        ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER",
        "Invalid resourceRequests." + std::string(key) + ": '" + value + "' " + std::string(rule)};
}

constexpr std::string_view kPositive = "must resolve to a positive resource request.";

Status add_requests(const model::StringMap& wanted, CreateRequest& request) {
    if (const std::string* text = find_value(wanted, "cpu")) {
        const auto cores = model::parse_cpu(*text);
        if (!cores) return bad_request("cpu", *text, kPositive);
        if (*cores > model::kMostCores)
            return bad_request("cpu", *text, "must be 1000000 cores or fewer.");
        request.cpu_request = *cores;
    }
    if (const std::string* text = find_value(wanted, "memory")) {
        const auto bytes = model::parse_memory(*text);
        if (!bytes) return bad_request("memory", *text, kPositive);
        if (*bytes > model::kMostMemory)
            return bad_request("memory", *text, "must be 1024Ti or less.");
        request.memory_request = *bytes;
    }
    return {};
}

Status add_hooks(const SandboxSpec& spec, CreateRequest& request) {
    if (!spec.hooks) return {};
    request.hooks = model::to_json(*spec.hooks);
    const auto plan = model::HookPlan::parse(request.hooks);
    if (!plan) return plan.error().as("SANDBOX::INVALID_PARAMETER");
    if (plan->pre_start) {
        request.start_seconds = static_cast<std::uint32_t>(plan->pre_start->timeout.count()) + 10;
    }
    return {};
}

/// Tenants may use the same names for volumes of their own.
std::string name_for(const std::string& claim, const std::string& tenant) {
    if (tenant.empty()) return claim;
    constexpr std::size_t kEnough = 16;
    return claim + "." + sha256_hex(tenant).substr(0, kEnough);
}

ResourceLimits with_defaults(ResourceLimits limits, const ResourceLimits& defaults) {
    for (const model::LimitRow& row : model::kLimits) {
        if (limits.*row.member == 0) limits.*row.member = defaults.*row.member;
    }
    return limits;
}

Error bad_volume(const model::Volume& volume, std::string_view code, std::string_view text) {
    return {ErrorCode::invalid_argument, "VOLUME::" + std::string(code),
            "volumes." + volume.name + "." + std::string(text)};
}

/// What the kernel shows there is the sandbox's own and no place for files.
bool is_kernel_path(std::string_view path) {
    return std::ranges::any_of(std::array<std::string_view, 3>{"/proc", "/sys", "/dev"},
                               [&](std::string_view place) { return is_within(path, place); });
}

}  // namespace

Result<VolumeMount> RequestPlanner::add_volume(const model::Volume& volume,
                                               const std::string& tenant, CreateRequest& request,
                                               std::vector<std::string>& made) const {
    VolumeMount mount;
    mount.name = volume.name;
    mount.target = std::filesystem::path(volume.mount_path).lexically_normal().string();
    mount.read_only = volume.read_only;
    if (!mount.target.starts_with('/') || is_kernel_path(mount.target)) {
        return bad_volume(volume, "INVALID_MOUNT_PATH",
                          "mountPath: must be absolute and not in /proc, /sys or /dev.");
    }
    if (std::holds_alternative<model::HostVolume>(volume.backend)) {
        auto source = resolve_host_volume(volume, allowed_host_paths_);
        if (!source) return source.error();
        mount.source = std::move(*source);
        mount.reachable = !mount.read_only;
        return mount;
    }
    const auto* claim = std::get_if<model::ClaimVolume>(&volume.backend);
    if (!claim) {
        // Mounted last, when nothing else can fail; its sub_path is the tool's.
        if (auto ok = check_bucket_volume(volume, allowed_host_paths_); !ok) return ok.error();
        mount.bucket = true;
        return mount;
    }
    if (!is_valid_sub_path(volume.sub_path)) {
        return bad_volume(volume, "INVALID_SUB_PATH", "subPath: must be relative, without '..'.");
    }
    const std::string name = name_for(claim->claim_name, tenant);
    auto fresh = claims_.ensure(name, claim->create_if_missing);
    if (!fresh) return fresh.error().within("volumes." + volume.name);
    if (*fresh) made.push_back(name);
    if (*fresh && claim->delete_with_sandbox) request.plan.own_claims.push_back(name);
    request.plan.claims.push_back(name);
    mount.source = claims_.path(name).string();
    mount.sub_path = volume.sub_path;
    return mount;
}

void RequestPlanner::add_network(const SandboxSpec& spec, CreateRequest& request) const {
    NetworkChoice& network = request.plan.network;
    network = spec.network;
    if (network.hostname.empty()) network.hostname = spec.id.substr(0, 8);
    if (network_off_ && !network.chosen) network.none = true;
    // Tenants may use the same names.
    if (!network.shared.empty()) network.shared = spec.tenant + "/" + network.shared;
}

/// A copy is cut off, and meets others, as its source is; it gets ports of the host's of its own.
void RequestPlanner::inherit_network(const SandboxDescription& source, CreateRequest& request) {
    std::string hostname = std::move(request.plan.network.hostname);
    request.plan.network = source.plan.network;
    request.plan.network.hostname = std::move(hostname);
}

Status RequestPlanner::add_volumes(const SandboxSpec& spec, CreateRequest& request,
                                   std::vector<std::string>& made) const {
    if (spec.volumes.size() + spec.memory_volumes.size() > kMaxVolumes) {
        return Error(ErrorCode::invalid_argument, "SANDBOX::INVALID_PARAMETER",
                     "volumes: at most " + std::to_string(kMaxVolumes) + " fit a sandbox.");
    }
    for (const model::Volume& volume : spec.volumes) {
        auto mount = add_volume(volume, spec.tenant, request, made);
        if (!mount) return mount.error();
        request.volumes.push_back(std::move(*mount));
    }
    for (const MemoryVolume& volume : spec.memory_volumes) {
        VolumeMount& mount = request.volumes.emplace_back();
        mount.name = "tmpfs";
        mount.target = std::filesystem::path(volume.mount_path).lexically_normal().string();
        mount.size = volume.size;
    }
    // What lies in another comes after it.
    std::ranges::sort(request.volumes, {}, &VolumeMount::target);
    return {};
}

Result<RequestPlanner::Base> RequestPlanner::resolve_base(const std::string& reference,
                                                          const std::string& snapshot) const {
    Base base;
    if (snapshot.empty()) {
        auto origin = resolve_image(*images_, reference);
        if (!origin) {
            Error error = origin.error().within("image");
            if (error.code() == ErrorCode::not_found) {
                error = error.as("NATIVE::SANDBOX_IMAGE_PULL_FAILED");
            }
            return error;
        }
        base.image = std::move(*origin);
        return base;
    }
    auto record = snapshots_.read(snapshot);
    if (!record) return record.error();
    base.snapshot_layers = std::move(record->layers);
    base.image = std::move(record->image);
    base.egress = std::move(record->egress);
    base.source = std::move(record->source);
    if (base.source) base.egress = base.source->egress;
    // A copy stands on exactly what its source stands on.
    if (base.image.usr.empty() || base.source) return base;
    // The host's image changes with the host; only the present one is kept over a restart of it.
    auto origin = resolve_image(*images_, base.image.reference);
    if (!origin) return origin.error().within("image below the snapshot");
    base.image = std::move(*origin);
    return base;
}

Result<CreateRequest> RequestPlanner::plan(const SandboxSpec& spec,
                                           std::vector<std::string>& made) const {
    auto base = resolve_base(spec.image, spec.snapshot ? spec.snapshot->id : std::string());
    if (!base) return base.error();
    return build(spec, std::move(*base), made);
}

std::optional<Result<CreateRequest>> RequestPlanner::plan_at_once(const SandboxSpec& spec) const {
    if (spec.snapshot || !spec.volumes.empty()) return std::nullopt;
    auto rootfs = images_->resolve_known(spec.image);
    if (!rootfs) return std::nullopt;
    Base base;
    base.image = origin_of(spec.image, std::move(*rootfs));
    std::vector<std::string> nothing;
    return build(spec, std::move(base), nothing);
}

Result<CreateRequest> RequestPlanner::build(const SandboxSpec& spec, Base base,
                                            std::vector<std::string>& made) const {
    CreateRequest request;
    request.id = spec.id;
    SandboxPlan& plan = request.plan;
    plan.image = std::move(base.image);
    plan.snapshot_layers = std::move(base.snapshot_layers);
    Environment below =
        base.source ? std::move(base.source->plan.environment) : plan.image.config.env;
    plan.environment = merge(merge(std::move(below), sandbox_environment(spec)), spec.env);
    plan.entrypoint = spec.entrypoint;
    // All limits of the source, also those that its row does not know.
    plan.limits = with_defaults(base.source ? base.source->plan.limits : spec.limits, defaults_);
    if (auto s = add_requests(spec.resource_requests, request); !s) return s.error();
    if (auto s = add_hooks(spec, request); !s) return s.error();
    request.agent_token = spec.agent_token;
    add_network(spec, request);
    if (base.source) inherit_network(*base.source, request);
    auto egress = plan_egress(spec, base.egress, egress_);
    if (!egress) return egress.error();
    request.egress = std::move(*egress);
    if (is_intercepted(request.egress)) {
        // By it the agent knows that there is a certificate to be trusted.
        plan.environment = merge(std::move(plan.environment),
                                 {{std::string(egress::setting::kTransparent), "true"}});
    }
    if (auto s = add_volumes(spec, request, made); !s) return s.error();
    // What differs from sandbox to sandbox cannot be made ahead.
    const bool special = spec.snapshot || !request.volumes.empty() || spec.hooks ||
                         plan.network.none || !plan.network.shared.empty() ||
                         !plan.network.published.empty();
    if (!special) add_warm(request);
    return request;
}

void RequestPlanner::add_warm(CreateRequest& request) const {
    const ImageOrigin& image = request.plan.image;
    const auto& labels = image.config.labels;
    std::string programs;
    PoolSettings pool = warm_.pool;
    auto name = image::normalize_reference(image.reference);
    const auto configured = name ? warm_.images.find(*name) : warm_.images.end();
    if (configured != warm_.images.end()) {
        programs = configured->second.programs;
        pool = configured->second.pool;
    }
    const auto label = labels.find(kWarmLabel);
    if (programs.empty() && label != labels.end()) programs = label->second;
    if (programs.empty() || pool.max == 0) return;
    if (auto parsed = model::parse_warm_programs(programs); !parsed) {
        log::warn("an image's warm programs are not understood",
                  {{"image", image.reference}, {"reason", parsed.error().message()}});
        return;
    }
    request.warm = std::move(programs);
    request.warm_pool = pool;
}

std::vector<CreateRequest> RequestPlanner::warm_images() const {
    std::vector<CreateRequest> out;
    auto images = images_->list();
    if (!images) return out;
    for (const image::ImageInfo& info : *images) {
        // The built-in one has no labels, and takes its time when it is not wanted.
        if (info.built_in && !warm_.images.contains(info.reference)) continue;
        // What another image took the name of is there for those that run on it.
        if (info.reference.find('@') != std::string::npos) continue;
        SandboxSpec spec;
        spec.image = info.reference;
        std::vector<std::string> none;
        auto request = plan(spec, none);
        if (request && !request->warm.empty()) out.push_back(std::move(*request));
    }
    return out;
}

void RequestPlanner::undo(const std::vector<std::string>& made) const {
    for (const std::string& name : made)
        claims_.undo(name);
}

}  // namespace opensandbox::runtime::native
