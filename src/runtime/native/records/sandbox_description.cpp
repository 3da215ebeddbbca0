#include "runtime/native/records/sandbox_description.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

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

using Ports = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

Result<Ports> take_ports(const json::object& object) {
    Ports ports;
    const auto* list = json::find(object, "published");
    if (!list) return ports;
    const Error malformed(ErrorCode::invalid_argument, "published: must be pairs of ports");
    if (!list->is_array()) return malformed;
    const auto port_of = [](const json::value& value) -> std::uint16_t {
        const std::int64_t number = value.is_int64() ? value.get_int64() : 0;
        return number > 0 && number <= 65'535 ? static_cast<std::uint16_t>(number) : 0;
    };
    for (const json::value& item : list->get_array()) {
        if (!item.is_array() || item.get_array().size() != 2) return malformed;
        ports.emplace_back(port_of(item.get_array()[0]), port_of(item.get_array()[1]));
        if (ports.back().first == 0 || ports.back().second == 0) return malformed;
    }
    return ports;
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
    out.hostname = request.hostname;
    out.network = request.network;
    out.no_network = request.no_network;
    out.created_at = now();
    return out;
}

void add_egress(const EgressTerms& terms, json::object& out) {
    if (!terms.wanted) return;
    json::object settings;
    for (const auto& [name, value] : terms.environment)
        settings[name] = value;
    out["networkPolicy"] = terms.policy;
    out["egressEnvironment"] = std::move(settings);
}

Result<EgressTerms> parse_egress(const json::object& object) {
    EgressTerms out;
    Status status;
    out.wanted = json::find(object, "networkPolicy") != nullptr;
    out.policy = take(json::get_string(object, "networkPolicy"), status);
    out.environment = take(json::get_string_map(object, "egressEnvironment"), status);
    if (!status) return status.error();
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
    for (const model::LimitRow& row : model::kLimits)
        out[row.record] = description.limits.*row.member;
    out["hostname"] = description.hostname;
    out["network"] = description.network;
    out["noNetwork"] = description.no_network;
    add_egress(description.egress, out);
    json::array published;
    for (const auto& [inside, outside] : description.published)
        published.push_back({inside, outside});
    out["published"] = std::move(published);
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
    out.hostname = take(json::get_string(object, "hostname"), status);
    out.network = take(json::get_string(object, "network"), status);
    out.no_network = take(json::get_bool(object, "noNetwork"), status);
    auto egress = parse_egress(object);
    if (!egress) return egress.error();
    out.egress = std::move(*egress);
    auto published = take_ports(object);
    if (!published) return published.error();
    out.published = std::move(*published);
    out.limits.cpu_cores = take(json::get_number(object, "cpuCores"), status);
    for (const model::LimitRow& row : model::kLimits) {
        out.limits.*row.member =
            static_cast<std::uint64_t>(take(json::get_integer(object, row.record), status));
    }
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
