#pragma once

#include "json/fields.hpp"

namespace opensandbox::sdk::fields {

inline constexpr auto kImageMembers = [](auto& walker, auto& image) {
    walker.put("reference", image.reference);
    walker.put(json::Field("digest").may_lack(), image.digest);
    walker.put(json::Field("size").may_lack(), image.size);
    walker.put(json::Field("createdAt", "created_at").may_lack(), image.created_at);
    walker.put(json::Field("builtIn", "built_in").may_lack(), image.built_in);
};

inline constexpr auto kPushedImageMembers = [](auto& walker, auto& pushed) {
    walker.put("reference", pushed.reference);
    walker.put("digest", pushed.digest);
    walker.put("size", pushed.size);
};

inline constexpr auto kLayerProgressMembers = [](auto& walker, auto& progress) {
    walker.put("layer", progress.layer);
    walker.put("status", progress.status);
    walker.put("done", progress.done);
    walker.put("total", progress.total);
};

inline constexpr auto kImageConfigMembers = [](auto& walker, auto& details) {
    walker.put("env", details.env);
    walker.put("user", details.user);
    walker.put(json::Field("workingDirectory", "working_directory"), details.working_directory);
    walker.put("entrypoint", details.entrypoint);
    walker.put("cmd", details.cmd);
    walker.put("labels", details.labels);
    walker.put(json::Field("exposedPorts", "exposed_ports"), details.exposed_ports);
};

inline constexpr auto kImageLayerMembers = [](auto& walker, auto& layer) {
    walker.put(json::Field("diffId", "diff_id"), layer.diff_id);
    walker.put("size", layer.size);
};

inline constexpr auto kImageDetailsMembers = [](auto& walker, auto& details) {
    kImageMembers(walker, details.info);
    walker.put(json::Field("os").only(json::kRead), details.os);
    walker.put(json::Field("architecture").only(json::kRead), details.architecture);
    std::string platform = details.os + "/" + details.architecture;
    walker.put(json::Field("platform").without(json::kRead), platform);
    walker.put(json::Field("source").may_lack().null_if_empty(), details.source);
    walker.object(json::Field("config").around(), details, kImageConfigMembers);
    walker.list("layers", details.layers, kImageLayerMembers);
};

}  // namespace opensandbox::sdk::fields
