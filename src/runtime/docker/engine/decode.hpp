#pragma once

#include "base/error.hpp"
#include "json/document.hpp"
#include "runtime/docker/engine/container.hpp"
#include "runtime/docker/engine/engine_info.hpp"
#include "runtime/docker/engine/events.hpp"
#include "runtime/docker/engine/image.hpp"
#include "runtime/docker/engine/volume.hpp"

#include <vector>

/// The engine's documents as values. All pure; `bad_gateway` says what is wrong with one.
namespace opensandbox::runtime::docker {

Result<EngineVersion> decode_version(const json::value& document);
Result<EngineInfo> decode_info(const json::value& document);
/// "1.41"; empty when it is none.
std::optional<ApiVersion> parse_api_version(std::string_view text);

Result<ImageInfo> decode_image(const json::value& document);
Result<std::vector<ImageSummary>> decode_image_list(const json::value& document);

Result<ContainerInfo> decode_container(json::value document);
Result<std::vector<ContainerSummary>> decode_container_list(const json::value& document);
Result<CreatedContainer> decode_created(const json::value& document);
Result<ContainerStats> decode_stats(const json::value& document);

Result<VolumeInfo> decode_volume(const json::value& document);
Result<std::vector<VolumeInfo>> decode_volume_list(const json::value& document);
Result<NetworkInfo> decode_network(const json::value& document);

Result<EngineEvent> decode_event(const json::value& document);

/// One line of a pull's stream: its progress, or the error that ends it.
Result<PullProgress> decode_pull_line(const json::value& document);

}  // namespace opensandbox::runtime::docker
