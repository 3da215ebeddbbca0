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

void members(auto& a, ImageOrigin& m) {
    a.put("reference", m.reference);
    a.put("digest", m.digest);
    a.put("layers", m.layers);
    a.put("usr", m.usr);
    a.put("env", m.config.env);
    a.put("user", m.config.user);
    a.put("workingDirectory", m.config.working_directory);
    a.put("entrypoint", m.config.entrypoint);
    a.put("cmd", m.config.cmd);
}

void members(auto& a, EgressTerms& m) {
    if (!a.given("networkPolicy", m.wanted)) return;
    a.put("networkPolicy", m.policy);
    a.put("egressEnvironment", m.environment);
}

void members(auto& a, ResourceLimits& m) {
    a.put("cpuCores", m.cpu_cores);
    for (const model::LimitRow& row : model::kLimits)
        a.put(row.record, m.*row.member);
}

void members(auto& a, SandboxDescription& m) {
    a.record("image", m.plan.image, [](auto& inner, auto& image) { members(inner, image); });
    a.put("snapshotLayers", m.plan.snapshot_layers);
    a.put("environment", m.plan.environment);
    a.put("entrypoint", m.plan.entrypoint);
    members(a, m.plan.limits);
    a.put("hostname", m.plan.network.hostname);
    a.put("network", m.plan.network.shared);
    a.put("noNetwork", m.plan.network.none);
    members(a, m.egress);
    a.put("published", m.published);
    a.put("claims", m.plan.claims);
    a.put("ownClaims", m.plan.own_claims);
    a.put("createdAt", m.created_at);
}

constexpr auto walk = [](auto& a, auto& m) { members(a, m); };

}  // namespace

json::object to_json(const ImageOrigin& origin) {
    return write_record(origin, walk);
}

Result<ImageOrigin> parse_origin(const json::object& object) {
    return read_record<ImageOrigin>(object, walk);
}

SandboxDescription describe(const CreateRequest& request) {
    SandboxDescription out;
    out.plan = request.plan;
    out.created_at = now();
    return out;
}

void add_egress(const EgressTerms& terms, json::object& out) {
    for (auto& member : write_record(terms, walk))
        out[member.key()] = std::move(member.value());
}

Result<EgressTerms> parse_egress(const json::object& object) {
    return read_record<EgressTerms>(object, walk);
}

std::string format_description(const SandboxDescription& description) {
    return json::serialize(write_record(description, walk));
}

Result<SandboxDescription> parse_description(std::string_view text) {
    auto document = json::parse(text);
    if (!document) return document.error();
    if (!document->is_object())
        return Error(ErrorCode::invalid_argument, "image: must be an object");
    auto out = read_record<SandboxDescription>(document->get_object(), walk);
    if (!out) return out.error();
    for (const auto& [inside, outside] : out->published)
        out->plan.network.published.push_back(inside);
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
