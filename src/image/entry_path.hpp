#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>

namespace opensandbox::image {

/// An archive entry's name, checked and without "." components: relative, no "..", components of
/// at most 255 bytes, at most 4095 bytes together.
struct EntryPath {
    std::string parent;  ///< empty for the layer's root
    std::string name;    ///< last component; empty when the entry is the root itself

    [[nodiscard]] std::string full() const { return parent.empty() ? name : parent + "/" + name; }
};

/// `invalid_argument` names the entry and the rule.
Result<EntryPath> parse_entry_path(std::string_view raw);

/// What a file name says in an OCI layer.
enum class Whiteout : std::uint8_t {
    none,      ///< an ordinary name
    file,      ///< ".wh.x": x of the layers below is gone
    opaque,    ///< ".wh..wh..opq": everything below this directory is gone
    metadata,  ///< other ".wh..wh." names: notes of an old file system, without meaning here
};
Whiteout whiteout_of(std::string_view name);
/// The x of ".wh.x".
std::string_view whiteout_target(std::string_view name);

/// `invalid_argument`: "entry "x": rule".
Error broken_rule(std::string_view entry, std::string_view rule);

}  // namespace opensandbox::image
