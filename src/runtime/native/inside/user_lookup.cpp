#include "runtime/native/inside/user_lookup.hpp"

#include <array>
#include <charconv>
#include <optional>

namespace opensandbox::runtime::native {

namespace {

using Fields = std::array<std::string_view, 7>;

std::string_view take_until(std::string_view& text, char end) {
    const std::size_t at = text.find(end);
    const std::string_view part = text.substr(0, at);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
    return part;
}

Fields split_entry(std::string_view line) {
    Fields fields;
    for (std::string_view& field : fields)
        field = take_until(line, ':');
    return fields;
}

/// The first entry whose field `column` is `value`.
std::optional<Fields> find_entry(std::string_view text, std::size_t column,
                                 std::string_view value) {
    while (!text.empty()) {
        const Fields fields = split_entry(take_until(text, '\n'));
        if (fields[column] == value) return fields;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
    return value;
}

Result<std::uint32_t> to_id(std::string_view text, std::string_view what) {
    const auto value = number(text);
    if (!value || *value > 65'535) {
        return Error(ErrorCode::invalid_argument,
                     std::string(what) + " " + std::string(text) + ": a number from 0 to 65535");
    }
    return static_cast<std::uint32_t>(*value);
}

Result<std::uint32_t> resolve_group(std::string_view name, std::string_view group) {
    if (number(name)) return to_id(name, "image group");
    const auto entry = find_entry(group, 0, name);
    if (!entry) {
        return Error(ErrorCode::not_found,
                     "image group " + std::string(name) + " has no entry in /etc/group");
    }
    return to_id((*entry)[2], "image group");
}

}  // namespace

Result<SandboxUser> resolve_user(std::string_view user, std::string_view passwd,
                                 std::string_view group) {
    const bool with_group = user.find(':') != std::string_view::npos;
    std::string_view group_name = user;
    std::string_view name = take_until(group_name, ':');
    if (name.empty()) name = "0";
    const bool numeric = number(name).has_value();
    SandboxUser found;
    found.home = name == "0" ? "/root" : "/";
    const auto entry = find_entry(passwd, numeric ? 2 : 0, name);
    if (!entry && !numeric) {
        return Error(ErrorCode::not_found,
                     "image user " + std::string(name) + " has no entry in /etc/passwd");
    }
    auto uid = to_id(entry ? (*entry)[2] : name, "image user");
    if (!uid) return uid.error();
    found.uid = *uid;
    if (entry) {
        auto gid = to_id((*entry)[3], "image group");
        if (!gid) return gid.error();
        found.gid = *gid;
        if (!(*entry)[5].empty()) found.home = (*entry)[5];
    }
    if (with_group && !group_name.empty()) {
        auto gid = resolve_group(group_name, group);
        if (!gid) return gid.error();
        found.gid = *gid;
    }
    return found;
}

}  // namespace opensandbox::runtime::native
