#pragma once

#include "image/store.hpp"
#include "runtime/native/records/claim_volumes.hpp"
#include "runtime/native/records/protocol.hpp"
#include "runtime/native/records/sandbox_description.hpp"
#include "runtime/native/server/native_runtime.hpp"
#include "runtime/native/spawner/snapshots/snapshot_files.hpp"

#include <optional>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// Turns what is to be made into what the spawner is asked for.
class RequestPlanner {
  public:
    /// Borrows the images.
    RequestPlanner(image::Store& images, const NativeOptions& options)
        : images_(&images),
          snapshots_(options.state_directory),
          claims_(options.state_directory),
          allowed_host_paths_(options.allowed_host_paths),
          warm_(options.warm),
          defaults_(options.defaults),
          egress_(options.egress),
          network_off_(options.network_off) {}

    /// Finds image or snapshot, checks values, makes the volumes that are to be made: their names
    /// come in `made`, also when it fails later. Blocks.
    Result<CreateRequest> plan(const SandboxSpec& spec, std::vector<std::string>& made) const;
    /// The same where nothing is to be made or read for it; empty otherwise. Does not block.
    std::optional<Result<CreateRequest>> plan_at_once(const SandboxSpec& spec) const;
    /// Takes volumes back that a failed creation made. Blocks.
    void undo(const std::vector<std::string>& made) const;
    /// A request for each image that declares programs to be started ahead. Blocks.
    [[nodiscard]] std::vector<CreateRequest> warm_images() const;
    [[nodiscard]] const SnapshotFiles& snapshots() const { return snapshots_; }

  private:
    /// What a sandbox starts from.
    struct Base {
        ImageOrigin image;
        std::vector<std::string> snapshot_layers;
        EgressTerms egress;                        ///< of its source then
        std::optional<SandboxDescription> source;  ///< of copies
    };
    Result<Base> resolve_base(const std::string& reference, const std::string& snapshot) const;
    Result<CreateRequest> build(const SandboxSpec& spec, Base base,
                                std::vector<std::string>& made) const;
    void add_warm(CreateRequest& request) const;
    void add_network(const SandboxSpec& spec, CreateRequest& request) const;
    static void inherit_network(const SandboxDescription& source, CreateRequest& request);
    Status add_volumes(const SandboxSpec& spec, CreateRequest& request,
                       std::vector<std::string>& made) const;
    Result<VolumeMount> add_volume(const model::Volume& volume, const std::string& tenant,
                                   CreateRequest& request, std::vector<std::string>& made) const;

    image::Store* images_;
    SnapshotFiles snapshots_;
    ClaimVolumes claims_;
    std::vector<std::string> allowed_host_paths_;
    WarmOptions warm_;
    ResourceLimits defaults_;
    Environment egress_;
    bool network_off_;
};

}  // namespace opensandbox::runtime::native
