#pragma once

#include "image/input_stream.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace opensandbox::image {

/// Whether the name is "etc", "usr/..." or below another directory that only roots have on top.
bool is_root_name(std::string_view name);

/// The members of an image archive (an uncompressed tar in a file). They are only ever read where
/// they are, never unpacked under the names they bring.
class ArchiveMembers {
  public:
    /// Borrows the descriptor. More than 65,536 members are no image archive: `any` is false then.
    static Result<ArchiveMembers> scan(int fd);

    [[nodiscard]] bool any() const { return !sizes_.empty(); }
    /// Whether a member lies in one of the directories of a Linux root (etc, usr, ...).
    [[nodiscard]] bool looks_like_root() const;
    /// A file of that name, or a link to one.
    [[nodiscard]] bool has(std::string_view name) const { return !resolve(name).empty(); }
    /// The file's own name after links; empty when there is none.
    [[nodiscard]] std::string resolve(std::string_view name) const;
    /// A whole document; `not_found`, or `too_large` past 4 MiB.
    Result<std::string> read(std::string_view name) const;

    using Visitor =
        std::function<Status(const std::string& name, InputStream& data, std::uint64_t size)>;
    /// Calls `visit` once for each of these files, in the archive's order.
    Status visit(const std::set<std::string>& names, const Visitor& visit) const;

  private:
    int fd_ = -1;
    std::map<std::string, std::uint64_t, std::less<>> sizes_;
    std::map<std::string, std::string, std::less<>> links_;
};

}  // namespace opensandbox::image
