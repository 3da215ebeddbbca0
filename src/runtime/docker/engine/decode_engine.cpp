#include "runtime/docker/engine/decode.hpp"
#include "runtime/docker/engine/document_reader.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::runtime::docker {
namespace {

ApiVersion read_version(DocumentReader& read, const json::object& from, std::string_view name) {
    std::string text = read.text(from, name);
    return parse_api_version(text).value_or(ApiVersion());
}

VolumeInfo read_volume(DocumentReader& read, const json::object& from) {
    VolumeInfo volume;
    volume.name = read.required(from, "Name");
    volume.driver = read.text(from, "Driver");
    volume.mountpoint = read.text(from, "Mountpoint");
    volume.labels = read.string_map(from, "Labels");
    volume.options = read.string_map(from, "Options");
    return volume;
}

}  // namespace

std::optional<ApiVersion> parse_api_version(std::string_view text) {
    ApiVersion version;
    const char* end = text.data() + text.size();
    auto [dot, bad_major] = std::from_chars(text.data(), end, version.major);
    if (bad_major != std::errc() || dot == end || *dot != '.') return std::nullopt;
    auto [last, bad_minor] = std::from_chars(dot + 1, end, version.minor);
    if (bad_minor != std::errc() || last != end) return std::nullopt;
    if (version.major < 0 || version.minor < 0) return std::nullopt;
    return version;
}

Result<EngineVersion> decode_version(const json::value& document) {
    DocumentReader read;
    const json::object& from = read.whole(document);
    EngineVersion version;
    version.version = read.text(from, "Version");
    version.api_version = read_version(read, from, "ApiVersion");
    version.min_api_version = read_version(read, from, "MinAPIVersion");
    version.os = read.text(from, "Os");
    version.architecture = read.text(from, "Arch");
    version.kernel = read.text(from, "KernelVersion");
    for (const json::object* component : read.objects(from, "Components")) {
        if (read.text(*component, "Name").starts_with("Podman")) version.podman = true;
    }
    if (auto status = read.status(); !status) return status.error();
    if (version.api_version == ApiVersion()) {
        return Error(ErrorCode::bad_gateway,
                     "answered with a malformed document: ApiVersion: must be like 1.41");
    }
    return version;
}

bool EngineInfo::has_runtime(std::string_view wanted) const {
    return std::ranges::find(runtimes, wanted) != runtimes.end();
}

bool EngineInfo::has_security_option(std::string_view wanted) const {
    std::string name = "name=" + std::string(wanted);
    return std::ranges::any_of(security_options, [&](const std::string& option) {
        return option == name || option.starts_with(name + ",");
    });
}

Result<EngineInfo> decode_info(const json::value& document) {
    DocumentReader read;
    const json::object& from = read.whole(document);
    EngineInfo info;
    info.id = read.text(from, "ID");
    info.name = read.text(from, "Name");
    info.server_version = read.text(from, "ServerVersion");
    info.operating_system = read.text(from, "OperatingSystem");
    info.os_type = read.text(from, "OSType");
    info.architecture = read.text(from, "Architecture");
    info.kernel_version = read.text(from, "KernelVersion");
    info.cgroup_version = read.text(from, "CgroupVersion");
    info.cgroup_driver = read.text(from, "CgroupDriver");
    info.storage_driver = read.text(from, "Driver");
    info.root_directory = read.text(from, "DockerRootDir");
    info.default_runtime = read.text(from, "DefaultRuntime");
    info.security_options = read.strings(from, "SecurityOptions");
    info.cpus = read.integer(from, "NCPU");
    info.memory_bytes = read.integer(from, "MemTotal");
    for (const auto& [name, description] : read.object(from, "Runtimes")) {
        info.runtimes.emplace_back(name);
    }
    std::ranges::sort(info.runtimes);
    if (auto status = read.status(); !status) return status.error();
    return info;
}

Result<VolumeInfo> decode_volume(const json::value& document) {
    DocumentReader read;
    VolumeInfo volume = read_volume(read, read.whole(document));
    if (auto status = read.status(); !status) return status.error();
    return volume;
}

Result<std::vector<VolumeInfo>> decode_volume_list(const json::value& document) {
    DocumentReader read;
    std::vector<VolumeInfo> volumes;
    for (const json::object* item : read.objects(read.whole(document), "Volumes")) {
        volumes.push_back(read_volume(read, *item));
    }
    if (auto status = read.status(); !status) return status.error();
    return volumes;
}

Result<NetworkInfo> decode_network(const json::value& document) {
    DocumentReader read;
    const json::object& from = read.whole(document);
    NetworkInfo network;
    network.id = read.required(from, "Id");
    network.name = read.text(from, "Name");
    network.driver = read.text(from, "Driver");
    network.scope = read.text(from, "Scope");
    network.internal = read.flag(from, "Internal");
    network.labels = read.string_map(from, "Labels");
    for (const json::object* part : read.objects(read.object(from, "IPAM"), "Config")) {
        std::string subnet = read.text(*part, "Subnet");
        std::string gateway = read.text(*part, "Gateway");
        if (!subnet.empty()) network.subnets.push_back(std::move(subnet));
        if (!gateway.empty()) network.gateways.push_back(std::move(gateway));
    }
    if (auto status = read.status(); !status) return status.error();
    return network;
}

}  // namespace opensandbox::runtime::docker
