#include "agent/isolated/request.hpp"

#include "agent/command/request.hpp"
#include "agent/ground/reply.hpp"
#include "agent/process/environment.hpp"
#include "base/json_string.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxMounts = 16;
constexpr std::int64_t kMaxSeconds = std::int64_t{10} * 365 * 86'400;

/// What a session has of its own: nothing of the sandbox can be mounted there.
bool is_reserved(std::string_view path) {
    constexpr std::array<std::string_view, 4> kOwn{"/proc", "/sys", "/dev", "/run"};
    return path == "/" ||
           std::ranges::any_of(kOwn, [&](std::string_view own) { return is_within(path, own); });
}

Status check_target(std::string_view field, const std::string& path) {
    if (!is_clean_path(path))
        return invalid(std::string(field) + ": must be an absolute, clean path");
    if (is_reserved(path)) {
        return invalid(std::string(field) + ": " + path + " belongs to the session itself");
    }
    return {};
}

Result<MountMode> to_mode(std::string_view field, std::string_view text) {
    if (text == "rw") return MountMode::read_write;
    if (text == "overlay") return MountMode::overlay;
    if (text == "ro") return MountMode::read_only;
    return invalid(std::string(field) + ".mode: must be rw, overlay or ro");
}

Result<WorkMount> parse_mount(const std::string& field, const json::value& from) {
    if (!from.is_object()) return invalid(field + ": must be an object");
    json::object members = with_lower_names(from.get_object());
    auto path = json::get_string(members, "path");
    if (!path) return path.error().within(field);
    if (!*path || (*path)->empty()) return invalid(field + ".path: is required");
    if (Status good = check_target(field + ".path", **path); !good) return good.error();
    auto mode_name = json::get_string(members, "mode");
    if (!mode_name) return mode_name.error().within(field);
    Result<MountMode> mode = to_mode(field, mode_name->value_or("overlay"));
    if (!mode) return mode.error();
    auto persist = json::get_bool(members, "persist");
    if (!persist) return persist.error().within(field);
    if (persist->has_value() && *mode != MountMode::overlay) {
        return invalid(field + ".persist: only goes with mode overlay");
    }
    return WorkMount(std::move(**path), *mode, persist->value_or(true));
}

Status take_mounts(const json::object& body, IsolatedSessionRequest& request) {
    if (const json::value* workspace = json::find(body, "workspace")) {
        Result<WorkMount> mount = parse_mount("workspace", *workspace);
        if (!mount) return mount.error();
        request.mounts.push_back(std::move(*mount));
        request.has_workspace = true;
    }
    if (const json::value* overlays = json::find(body, "overlays")) {
        if (!overlays->is_array()) return invalid("overlays: must be an array");
        for (const json::value& item : overlays->get_array()) {
            std::string field =
                "overlays[" +
                std::to_string(request.mounts.size() - (request.has_workspace ? 1 : 0)) + "]";
            Result<WorkMount> mount = parse_mount(field, item);
            if (!mount) return mount.error();
            request.mounts.push_back(std::move(*mount));
            if (request.mounts.size() > kMaxMounts) break;
        }
    }
    if (request.mounts.empty()) return invalid("workspace or overlays: at least one is required");
    if (request.mounts.size() > kMaxMounts) return invalid("overlays: at most 16 mounts");
    return {};
}

Status take_binds(const json::object& body, IsolatedSessionRequest& request) {
    auto writable = json::get_strings(body, "extra_writable");
    if (!writable) return writable.error();
    if (*writable) request.extra_writable = std::move(**writable);
    for (const std::string& path : request.extra_writable) {
        if (Status good = check_target("extra_writable", path); !good) return good;
    }
    const json::value* binds = json::find(body, "binds");
    if (!binds) return {};
    if (!binds->is_array()) return invalid("binds: must be an array");
    for (const json::value& item : binds->get_array()) {
        if (!item.is_object()) return invalid("binds: every item must be an object");
        json::object members = with_lower_names(item.get_object());
        auto source = json::get_string(members, "source");
        if (!source) return source.error().within("binds");
        auto destination = json::get_string(members, "dest");
        if (!destination) return destination.error().within("binds");
        auto read_only = json::get_bool(members, "readonly");
        if (!read_only) return read_only.error().within("binds");
        std::string from = source->value_or("");
        if (!is_clean_path(from)) return invalid("binds.source: must be an absolute, clean path");
        std::string to = destination->value_or("");
        if (to.empty()) to = from;
        if (Status good = check_target("binds.dest", to); !good) return good;
        request.binds.emplace_back(std::move(from), std::move(to), read_only->value_or(false));
    }
    return {};
}

/// Every place is mounted on once.
Status check_unique(const IsolatedSessionRequest& request) {
    std::vector<std::string_view> paths;
    for (const WorkMount& mount : request.mounts)
        paths.push_back(mount.path);
    for (const std::string& path : request.extra_writable)
        paths.push_back(path);
    for (const BindMount& bind : request.binds)
        paths.push_back(bind.destination);
    if (paths.size() > 4 * kMaxMounts) return invalid("binds: too many mounts");
    std::ranges::sort(paths);
    auto twice = std::ranges::adjacent_find(paths);
    if (twice == paths.end()) return {};
    return invalid("overlays: " + std::string(*twice) + " is given more than once");
}

Status take_user(const json::object& body, IsolatedSessionRequest& request) {
    if (Status taken = take_user_ids(body, request.uid, request.gid); !taken) return taken;
    auto mode = json::get_string(body, "uid_mode");
    if (!mode) return mode.error();
    std::string name = mode->value_or("setpriv");
    if (name != "setpriv" && name != "userns") {
        return invalid("uid_mode: must be setpriv or userns");
    }
    request.uid_mode = name == "userns" ? UidMode::userns : UidMode::setpriv;
    return {};
}

Status take_environment(const json::object& body, IsolatedSessionRequest& request) {
    const json::value* given = json::find(body, "env_passthrough");
    if (!given) return {};
    if (!given->is_object()) return invalid("env_passthrough: must be an object");
    json::object members = with_lower_names(given->get_object());
    auto mode = json::get_string(members, "mode");
    if (!mode) return mode.error().within("env_passthrough");
    std::string name = mode->value_or("deny");
    if (name != "allow" && name != "deny") {
        return invalid("env_passthrough.mode: must be allow or deny");
    }
    auto keys = json::get_strings(members, "keys");
    if (!keys) return keys.error().within("env_passthrough");
    request.environment.emplace();
    request.environment->allow = name == "allow";
    if (*keys) request.environment->names = std::move(**keys);
    return {};
}

Status take_rest(const json::object& body, IsolatedSessionRequest& request) {
    auto profile = json::get_string(body, "profile");
    if (!profile) return profile.error();
    std::string name = profile->value_or("strict");
    if (name != "strict" && name != "balanced") {
        return invalid("profile: must be strict or balanced");
    }
    request.profile = name == "strict" ? IsolationProfile::strict : IsolationProfile::balanced;
    auto share_net = json::get_bool(body, "share_net");
    if (!share_net) return share_net.error();
    request.share_net = share_net->value_or(true);
    auto idle = json::get_integer(body, "idle_timeout_seconds");
    if (!idle) return idle.error();
    if (idle->value_or(0) < 0) return invalid("idle_timeout_seconds: must not be negative");
    request.idle_timeout = std::chrono::seconds(std::min(idle->value_or(0), kMaxSeconds));
    return {};
}

std::string_view name_of(MountMode mode) {
    if (mode == MountMode::read_write) return "rw";
    return mode == MountMode::overlay ? "overlay" : "ro";
}

json::object describe(const WorkMount& mount) {
    json::object out{{"path", mount.path}, {"mode", name_of(mount.mode)}};
    if (mount.mode == MountMode::overlay) out["persist"] = mount.persist;
    return out;
}

}  // namespace

bool EnvironmentFilter::passes(std::string_view name) const {
    return (std::ranges::find(names, name) != names.end()) == allow;
}

std::string IsolatedSessionRequest::echo() const {
    json::object out;
    out["profile"] = profile == IsolationProfile::strict ? "strict" : "balanced";
    json::array overlays;
    for (const WorkMount& mount : mounts)
        overlays.emplace_back(describe(mount));
    if (mounts.size() == 1) {
        out["workspace"] =
            json::object{{"path", mounts[0].path}, {"mode", name_of(mounts[0].mode)}};
    }
    out["overlays"] = std::move(overlays);
    if (!extra_writable.empty()) {
        out["extra_writable"] = json::array(extra_writable.begin(), extra_writable.end());
    }
    json::array bound;
    for (const BindMount& bind : binds) {
        bound.emplace_back(json::object{
            {"source", bind.source}, {"dest", bind.destination}, {"readonly", bind.read_only}});
    }
    if (!bound.empty()) out["binds"] = std::move(bound);
    out["share_net"] = share_net;
    if (environment) {
        out["env_passthrough"] = json::object{
            {"mode", environment->allow ? "allow" : "deny"},
            {"keys", json::array(environment->names.begin(), environment->names.end())}};
    }
    if (uid) out["uid"] = *uid;
    if (gid) out["gid"] = *gid;
    out["uid_mode"] = uid_mode == UidMode::userns ? "userns" : "setpriv";
    out["idle_timeout_seconds"] = idle_timeout.count();
    std::string text = json::serialize(json::value(std::move(out)));
    // The members alone: the object goes on in the answer.
    return "," + text.substr(1, text.size() - 2);
}

Result<IsolatedSessionRequest> parse_isolated_session_request(const json::value& body) {
    if (!body.is_object()) return invalid("the request body must be a JSON object");
    json::object members = with_lower_names(body.get_object());
    IsolatedSessionRequest request;
    for (auto take : {take_mounts, take_binds, take_user, take_environment, take_rest}) {
        if (Status done = take(members, request); !done) return done.error();
    }
    if (Status good = check_unique(request); !good) return good.error();
    return request;
}

Result<RunRequest> parse_run_request(const json::value& body) {
    if (!body.is_object()) return invalid("the request body must be a JSON object");
    json::object members = with_lower_names(body.get_object());
    RunRequest request;
    auto code = json::get_string(members, "code");
    if (!code) return code.error();
    request.code = code->value_or("");
    if (request.code.empty()) return invalid("code: is required");
    if (request.code.find('\0') != std::string::npos) return invalid("code: must not hold NUL");
    auto envs = json::get_string_map(members, "envs");
    if (!envs) return envs.error();
    if (*envs) request.envs = std::move(**envs);
    if (Status good = check_environment(request.envs); !good) return good.error();
    auto timeout = json::get_integer(members, "timeout_seconds");
    if (!timeout) return timeout.error();
    if (timeout->value_or(0) < 0) return invalid("timeout_seconds: must not be negative");
    request.timeout = std::chrono::seconds(std::min(timeout->value_or(0), kMaxSeconds));
    auto background = json::get_bool(members, "background");
    if (!background) return background.error();
    request.background = background->value_or(false);
    return request;
}

bool is_clean_path(std::string_view path) {
    if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) return false;
    if (path == "/") return true;
    while (!path.empty()) {
        path.remove_prefix(1);
        std::string_view part = path.substr(0, path.find('/'));
        if (part.empty() || part == "." || part == "..") return false;
        path.remove_prefix(part.size());
    }
    return true;
}

bool is_within(std::string_view path, std::string_view directory) {
    if (directory == "/") return path.starts_with('/');
    return path.starts_with(directory) &&
           (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace opensandbox::agent
