#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace opensandbox::registry {

/// What became of one layer so far.
struct LayerProgress {
    enum class Status : std::uint8_t {
        waiting,
        present,  ///< the other side has it already
        downloading,
        downloaded,
        unpacking,
        packing,
        uploading,
        mounted,  ///< the registry took it from another of its repositories
        done,
    };

    std::string layer;  ///< "sha256:…" of the blob, or of the diff id while there is no blob
    Status status = Status::waiting;
    std::uint64_t done = 0;   ///< bytes
    std::uint64_t total = 0;  ///< 0: not known yet
};

std::string_view to_string(LayerProgress::Status status);

/// Called on the event loop. Must not block.
using ProgressListener = std::function<void(const LayerProgress&)>;

}  // namespace opensandbox::registry
