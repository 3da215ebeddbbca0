#pragma once

#include "image/store.hpp"
#include "lifecycle/lifecycle.hpp"
#include "server/api/routes.hpp"

#include <set>
#include <string>

/// What the files with the routes of images share.
namespace opensandbox::server {

/// Ours: the contract has no images. The codes follow its style.
Error image_error(const Error& error);
/// The same for what passed between us and a registry, whose refusal is not ours.
Error transfer_error(const Error& error);

/// The image as the API shows it.
void append_image(std::string& out, const image::ImageInfo& info);

/// References of the images that sandboxes and snapshots stand on.
std::set<std::string> images_in_use(lifecycle::Lifecycle& lifecycle);
/// Their digests. Blocks.
Result<std::set<std::string>> digests_of(image::Store& store,
                                         const std::set<std::string>& references);

/// POST /images/pull and /images/push.
void add_image_transfer_routes(http::Router& router, Services& services, Mount mount);
/// GET /images/inspect and /images/export, POST /images/prune.
void add_image_detail_routes(http::Router& router, Services& services, Mount mount);

}  // namespace opensandbox::server
