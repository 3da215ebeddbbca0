#pragma once

#include "cli/arguments.hpp"
#include "cli/command_table.hpp"
#include "opensandbox/images.hpp"

#include <vector>

namespace opensandbox::cli {

/// Options by which a command that makes an image says what is different in its config.
const std::vector<Option>& image_config_options();

/// What they say; `arguments` remembers the first that is malformed.
sdk::ImageConfigChange read_image_config(Arguments& arguments);

}  // namespace opensandbox::cli
