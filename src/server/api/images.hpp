#pragma once

#include "image/derivation.hpp"
#include "image/store.hpp"
#include "lifecycle/lifecycle.hpp"
#include "model/field_error.hpp"
#include "server/api/routes.hpp"

#include <set>
#include <string>
#include <string_view>
#include <variant>

/// What the files with the routes of images share.
namespace opensandbox::server {

/// The contract has no images: the codes, IMAGE::…, are ours and follow its style. Errors that have
/// a code keep it.
Error image_error(const Error& error);
/// The same for what passed between us and a registry, whose refusal is not ours.
Error transfer_error(const Error& error);

/// One image as every route shows it.
std::string image_json(const image::ImageInfo& info);

/// References of the images that sandboxes and snapshots stand on.
std::set<std::string> images_in_use(lifecycle::Lifecycle& lifecycle);
/// Their digests. Blocks.
Result<std::set<std::string>> digests_of(image::Store& store,
                                         const std::set<std::string>& references);

/// POST /images/pull and /images/push.
void add_image_transfer_routes(http::Router& router, Services& services, Mount mount);
/// GET /images/inspect and /images/export, POST /images/prune.
void add_image_detail_routes(http::Router& router, Services& services, Mount mount);

/// A name for an image to be made, and what is different in its config.
struct NamedImage {
    std::string source;  ///< of POST /images/tag only
    std::string reference;
    image::ConfigChange change;
};

/// POST /snapshots/{id}/image.
std::variant<NamedImage, model::FieldErrors> parse_snapshot_image(std::string_view body);
/// POST /images/tag.
std::variant<NamedImage, model::FieldErrors> parse_image_tag(std::string_view body);

}  // namespace opensandbox::server
