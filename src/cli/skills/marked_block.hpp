#pragma once

#include "opensandbox/error.hpp"

#include <optional>
#include <string>
#include <string_view>

/// A part of a text file between two comment lines that name it; the rest is somebody else's.
namespace opensandbox::cli {

/// Whether the block is there. Error: a mark without its counterpart or more than once, which a
/// person must look at.
sdk::Result<bool> has_block(std::string_view text, std::string_view marker);

/// The text with the block in place of an earlier one, or at its end.
sdk::Result<std::string> with_block(std::string_view text, std::string_view marker,
                                    std::string_view content);

/// The text without the block; empty when there was none.
sdk::Result<std::optional<std::string>> without_block(std::string_view text,
                                                      std::string_view marker);

}  // namespace opensandbox::cli
