#include "json/document.hpp"
#include "sdk/fields/page.hpp"
#include "sdk/fields/snapshot.hpp"
#include "sdk/wire.hpp"
#include "sdk/wire_reader.hpp"

namespace opensandbox::sdk::wire {

std::string encode_snapshot(const std::optional<std::string>& name) {
    json::object body;
    if (name) body["name"] = *name;
    return json::serialize(body);
}

Result<SnapshotInfo> decode_snapshot(std::string_view body) {
    return decode_document<SnapshotInfo>(body, fields::kSnapshotMembers);
}

Result<SnapshotPage> decode_snapshot_page(std::string_view body) {
    return decode_document<SnapshotPage>(body, fields::page_members(fields::kSnapshotMembers));
}

std::string encode_named_image(const std::string& source, const std::string& reference,
                               const ImageConfigChange& change) {
    json::object config;
    if (change.environment) config["env"] = json::string_object(*change.environment);
    if (change.user) config["user"] = *change.user;
    if (change.working_directory) config["workingDir"] = *change.working_directory;
    if (change.entrypoint) config["entrypoint"] = json::string_array(*change.entrypoint);
    if (change.cmd) config["cmd"] = json::string_array(*change.cmd);
    if (change.labels) config["labels"] = json::string_object(*change.labels);
    if (change.exposed_ports) config["exposedPorts"] = json::string_array(*change.exposed_ports);
    json::object body;
    if (!source.empty()) body["source"] = source;
    body["reference"] = reference;
    if (!config.empty()) body["config"] = std::move(config);
    return json::serialize(body);
}

}  // namespace opensandbox::sdk::wire
