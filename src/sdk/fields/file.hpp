#pragma once

#include "json/fields.hpp"
#include "opensandbox/files.hpp"

namespace opensandbox::sdk::fields {

/// Types that this version does not know are "other".
struct FileTypeForm {
    using Stored = std::string;
    static opensandbox::Result<std::optional<FileType>> read(const json::object& from,
                                                             std::string_view name);
    static json::value write(FileType type) { return json::value(to_string(type)); }
};

struct FileModeForm {
    using Stored = std::int64_t;
    static opensandbox::Result<std::optional<std::uint32_t>> read(const json::object& from,
                                                                  std::string_view name);
    static json::value write(std::uint32_t mode);
};

inline constexpr auto kFileMembers = [](auto& walker, auto& info) {
    walker.put("path", info.path);
    walker.put(
        json::Field("type", "entry_type").may_lack().help("file, directory, symlink or other"),
        info.type, FileTypeForm());
    walker.put(json::Field("mode").help("Octal digits as a number: 644"), info.mode,
               FileModeForm());
    walker.put("owner", info.owner);
    walker.put("group", info.group);
    walker.put("size", info.size);
    walker.put("modified_at", info.modified_at);
    walker.put("created_at", info.created_at);
};

}  // namespace opensandbox::sdk::fields
