#pragma once

#include "runtime/native/records/protocol.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

/// What a server's things on this host are called.
namespace opensandbox::runtime::native {

/// Six hex digits from the state directory: they tell the servers of a host apart.
std::string tag_of(const std::filesystem::path& state_directory);
/// Of all links of the server with this tag, 9 characters.
inline std::string link_prefix(const std::string& tag) {
    return "osb" + tag;
}
inline std::string cgroup_group(const std::string& tag) {
    return "opensandbox-" + tag;
}

/// "s" and six hex digits: directory and cgroup of a slot.
std::string slot_name(SlotId slot);
/// The serial in such a name; empty when it is none.
std::optional<std::uint32_t> slot_serial(std::string_view name);

}  // namespace opensandbox::runtime::native
