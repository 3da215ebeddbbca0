#pragma once

#include "image/archive_members.hpp"
#include "image/catalog.hpp"
#include "image/manifest.hpp"
#include "image/staged_image.hpp"
#include "image/staging.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::image {

/// One import, from a stream of unknown kind to a staged image.
///
/// A root file system whose first name tells (etc/…, usr/…) is unpacked as it comes. All else is
/// kept decompressed in one staged file: image archives may bring their index last, and what an
/// archive is shows only when all names are known.
class Import {
  public:
    /// Everything ends with `cancelled` soon after `stop` asks for it.
    Import(const Reference& reference, const ImportLimits& limits, const Staging& staging,
           std::stop_token stop)
        : reference_(reference),
          budget_(limits),
          staging_(staging.path()),
          stop_(std::move(stop)) {}

    /// Reads the source to its end.
    Status read(const ByteSource& source);
    /// Unpacks the layers that the store does not have. May be called again when one that it had
    /// was removed meanwhile.
    Result<StagedImage> stage(const std::function<bool(const std::string& hex)>& has_layer);

  private:
    /// A layer to unpack and what must be true of it.
    struct LayerSource {
        std::string member;
        std::string hex;  ///< of the blob; empty when nothing vouches for it
        std::optional<std::uint64_t> size;
        std::string diff_id;
    };
    struct Plan {
        ImageRecord image;
        std::optional<ImageDocuments> documents;
        std::vector<LayerSource> layers;
    };

    Status keep_root(const LayerRecord& layer, const std::string& diff_id);
    Status stage_kept_root();
    Result<std::string> read_blob(const ArchiveMembers& members, const Descriptor& blob);
    Result<Plan> plan_layout(const ArchiveMembers& members);
    Result<Plan> plan_docker(const ArchiveMembers& members);
    Status plan_config(Plan& plan, std::string_view text);
    Result<StagedImage> stage_plan(Plan plan, const ArchiveMembers& members,
                                   const std::function<bool(const std::string&)>& has_layer);
    Result<LayerRecord> stage_layer(const LayerSource& layer, InputStream& data,
                                    std::uint64_t size);

    Reference reference_;
    ImportBudget budget_;
    std::filesystem::path staging_;
    std::stop_token stop_;
    UniqueFd spool_;                   ///< the archive, when it was kept
    std::optional<StagedImage> root_;  ///< the image, when it is a root file system
};

}  // namespace opensandbox::image
