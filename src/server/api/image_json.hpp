#pragma once

#include "image/store.hpp"

#include <string>

namespace opensandbox::server {

/// The contract has no images: the codes, IMAGE::…, are ours and follow its style. Errors that have
/// a code keep it.
Error image_error(const Error& error);

/// One image as every route shows it.
std::string image_json(const image::ImageInfo& info);

}  // namespace opensandbox::server
