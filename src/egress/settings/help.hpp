#pragma once

#include <string>

namespace opensandbox::egress {

/// The table of settings as `opensandbox egress --help` prints it: a paragraph a topic, each
/// setting with what counts while it is unset.
std::string settings_help();

}  // namespace opensandbox::egress
