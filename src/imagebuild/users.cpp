#include "imagebuild/users.hpp"

#include <charconv>
#include <optional>
#include <vector>

namespace opensandbox::imagebuild {
namespace {

std::optional<std::uint32_t> id_of(std::string_view text) {
    std::uint32_t id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return id;
}

/// The fields of the first line whose name is `who`, or whose id is; empty when there is none.
std::vector<std::string_view> find_line(std::string_view table, std::string_view who,
                                        std::size_t fields) {
    const auto id = id_of(who);
    while (!table.empty()) {
        const auto end = table.find('\n');
        std::string_view line = table.substr(0, end);
        table.remove_prefix(end == std::string_view::npos ? table.size() : end + 1);
        std::vector<std::string_view> parts;
        for (;;) {
            const auto colon = line.find(':');
            parts.push_back(line.substr(0, colon));
            if (colon == std::string_view::npos) break;
            line.remove_prefix(colon + 1);
        }
        if (parts.size() < fields) continue;
        if (parts[0] == who || (id && id_of(parts[2]) == id)) return parts;
    }
    return {};
}

}  // namespace

Result<BuildUser> resolve_user(std::string_view user, std::string_view passwd,
                               std::string_view group) {
    BuildUser out;
    const auto colon = user.find(':');
    const std::string_view name = user.substr(0, colon);
    const std::string_view wanted_group =
        colon == std::string_view::npos ? std::string_view() : user.substr(colon + 1);
    if (const auto entry = find_line(passwd, name.empty() ? "0" : name, 6); !entry.empty()) {
        out.uid = id_of(entry[2]).value_or(0);
        out.gid = id_of(entry[3]).value_or(0);
        if (!entry[5].empty()) out.home = std::string(entry[5]);
    } else if (const auto id = id_of(name)) {
        out.uid = *id;
        if (*id != 0) out.home = "/";
    } else if (!name.empty()) {
        return Error(ErrorCode::not_found,
                     "there is no user '" + std::string(name) + "' in the image's /etc/passwd");
    }
    if (wanted_group.empty()) return out;
    if (const auto entry = find_line(group, wanted_group, 3); !entry.empty()) {
        out.gid = id_of(entry[2]).value_or(0);
    } else if (const auto id = id_of(wanted_group)) {
        out.gid = *id;
    } else {
        return Error(ErrorCode::not_found, "there is no group '" + std::string(wanted_group) +
                                               "' in the image's /etc/group");
    }
    return out;
}

}  // namespace opensandbox::imagebuild
