#include "runtime/native/sandbox_description.hpp"

#include "runtime/native/kernel.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr const char* file_name = "description.json";

/// The member, or the default; the first that has a wrong type is remembered.
template <class T>
T take(Result<std::optional<T>> found, Status& status) {
    if (!found) {
        if (status) status = found.error();
        return {};
    }
    return std::move(*found).value_or(T());
}

}  // namespace

SandboxDescription describe(const CreateRequest& request) {
    SandboxDescription out;
    out.image.reference = request.image;
    out.image.digest = request.digest;
    out.image.layers = request.layers;
    out.image.usr = request.usr;
    out.image.config.env = request.image_env;
    out.image.config.user = request.user;
    out.image.config.working_directory = request.working_directory;
    out.snapshot_layers = request.snapshot_layers;
    out.environment = request.env;
    out.entrypoint = request.entrypoint;
    out.limits = request.limits;
    out.claims = request.claims;
    out.own_claims = request.own_claims;
    out.created_at = now();
    return out;
}

std::string format_description(const SandboxDescription& description) {
    json::object environment;
    for (const auto& [name, value] : description.environment)
        environment[name] = value;
    json::object out;
    out["image"] = to_json(description.image);
    out["snapshotLayers"] = to_json(description.snapshot_layers);
    out["environment"] = std::move(environment);
    out["entrypoint"] = to_json(description.entrypoint);
    out["cpuCores"] = description.limits.cpu_cores;
    out["memoryBytes"] = description.limits.memory_bytes;
    out["pids"] = description.limits.pids;
    out["claims"] = to_json(description.claims);
    out["ownClaims"] = to_json(description.own_claims);
    out["createdAt"] = description.created_at.time_since_epoch().count();
    return json::serialize(out);
}

Result<SandboxDescription> parse_description(std::string_view text) {
    auto document = json::parse(text);
    if (!document) return document.error();
    if (!document->is_object() || !json::find(document->get_object(), "image") ||
        !json::find(document->get_object(), "image")->is_object()) {
        return Error(ErrorCode::invalid_argument, "image: must be an object");
    }
    const json::object& object = document->get_object();
    auto origin = parse_origin(json::find(object, "image")->get_object());
    if (!origin) return origin.error().within("image");
    SandboxDescription out;
    Status status;
    out.image = std::move(*origin);
    out.snapshot_layers = take(json::get_strings(object, "snapshotLayers"), status);
    out.environment = take(json::get_string_map(object, "environment"), status);
    out.entrypoint = take(json::get_strings(object, "entrypoint"), status);
    out.claims = take(json::get_strings(object, "claims"), status);
    out.own_claims = take(json::get_strings(object, "ownClaims"), status);
    out.limits.cpu_cores = take(json::get_number(object, "cpuCores"), status);
    out.limits.memory_bytes =
        static_cast<std::uint64_t>(take(json::get_integer(object, "memoryBytes"), status));
    out.limits.pids = static_cast<std::uint64_t>(take(json::get_integer(object, "pids"), status));
    out.created_at =
        Timestamp(std::chrono::microseconds(take(json::get_integer(object, "createdAt"), status)));
    if (!status) return status.error();
    return out;
}

Status write_description(const std::filesystem::path& slot, const SandboxDescription& description) {
    const auto path = slot / file_name;
    const std::string text = format_description(description);
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd) return last_error("create " + path.string());
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written == static_cast<ssize_t>(text.size())) return {};
    return Error::from_errno(written < 0 ? errno : ENOSPC, "write " + path.string());
}

Result<SandboxDescription> read_description(const std::filesystem::path& slot) {
    std::ifstream in(slot / file_name, std::ios::binary);
    if (!in) return Error(ErrorCode::not_found, "what the sandbox was made of is not known");
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    return parse_description(text);
}

}  // namespace opensandbox::runtime::native
