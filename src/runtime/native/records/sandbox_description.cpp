#include "runtime/native/records/sandbox_description.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr const char* kFileName = "description.json";

constexpr auto kImageMembers = [](auto& walker, auto& origin) {
    walker.put("reference", origin.reference);
    walker.put("digest", origin.digest);
    walker.put("layers", origin.layers);
    walker.put("usr", origin.usr);
    walker.put("env", origin.config.env);
    walker.put("user", origin.config.user);
    walker.put("workingDirectory", origin.config.working_directory);
    walker.put("entrypoint", origin.config.entrypoint);
    walker.put("cmd", origin.config.cmd);
};

constexpr auto kEgressMembers = [](auto& walker, auto& terms) {
    if (!walker.given("networkPolicy", terms.wanted)) return;
    walker.put("networkPolicy", terms.policy);
    walker.put("egressEnvironment", terms.environment);
};

constexpr auto kLimitMembers = [](auto& walker, auto& limits) {
    walker.put("cpuCores", limits.cpu_cores);
    for (const model::LimitRow& row : model::kLimits)
        walker.put(json::Field(row.record), limits.*row.member);
};

constexpr auto kDescriptionMembers = [](auto& walker, auto& description) {
    auto& plan = description.plan;
    walker.object("image", plan.image, kImageMembers);
    walker.put("snapshotLayers", plan.snapshot_layers);
    walker.put("environment", plan.environment);
    walker.put("entrypoint", plan.entrypoint);
    kLimitMembers(walker, plan.limits);
    walker.put("hostname", plan.network.hostname);
    walker.put("network", plan.network.shared);
    walker.put("noNetwork", plan.network.none);
    kEgressMembers(walker, description.egress);
    walker.put("published", description.published, PortPairsForm());
    walker.put("claims", plan.claims);
    walker.put("ownClaims", plan.own_claims);
    walker.put("createdAt", description.created_at, TicksForm());
};

}  // namespace

json::object to_json(const ImageOrigin& origin) {
    return json::write_fields(origin, kImageMembers);
}

Result<ImageOrigin> parse_origin(const json::object& object) {
    return read_record<ImageOrigin>(object, kImageMembers);
}

SandboxDescription describe(const CreateRequest& request) {
    SandboxDescription out;
    out.plan = request.plan;
    out.created_at = now();
    return out;
}

void add_egress(const EgressTerms& terms, json::object& out) {
    for (auto& member : json::write_fields(terms, kEgressMembers))
        out[member.key()] = std::move(member.value());
}

Result<EgressTerms> parse_egress(const json::object& object) {
    return read_record<EgressTerms>(object, kEgressMembers);
}

std::string format_description(const SandboxDescription& description) {
    return json::serialize(json::write_fields(description, kDescriptionMembers));
}

Result<SandboxDescription> parse_description(std::string_view text) {
    auto document = json::parse(text);
    if (!document) return document.error();
    const json::object* record = document->if_object();
    if (!record || !json::find(*record, "image"))
        return Error(ErrorCode::invalid_argument, "image: must be an object");
    auto out = read_record<SandboxDescription>(*record, kDescriptionMembers);
    if (!out) return out.error();
    for (const auto& [inside, outside] : out->published)
        out->plan.network.published.push_back(inside);
    return out;
}

Status write_description(const std::filesystem::path& slot, const SandboxDescription& description) {
    const auto path = slot / kFileName;
    const std::string text = format_description(description);
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd) return last_error("create " + path.string());
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written == static_cast<ssize_t>(text.size())) return {};
    return Error::from_errno(written < 0 ? errno : ENOSPC, "write " + path.string());
}

Result<SandboxDescription> read_description(const std::filesystem::path& slot) {
    std::ifstream in(slot / kFileName, std::ios::binary);
    if (!in) return Error(ErrorCode::not_found, "what the sandbox was made of is not known");
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    return parse_description(text);
}

}  // namespace opensandbox::runtime::native
