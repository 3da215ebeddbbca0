#include "agent/process/accounts.hpp"

#include "base/unique_fd.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMaxFile = std::size_t{1} << 20;

std::string read_limited(const char* path) {
    std::string text;
    UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return text;
    std::array<char, 4096> piece{};
    while (text.size() < kMaxFile) {
        ssize_t got = ::read(file.get(), piece.data(), piece.size());
        if (got <= 0) break;
        text.append(piece.data(), static_cast<std::size_t>(got));
    }
    return text;
}

std::optional<std::uint32_t> to_id(std::string_view text) {
    std::uint32_t id = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
        return std::nullopt;
    }
    return id;
}

/// The first four colon-separated fields of a line; false when there are fewer.
bool first_fields(std::string_view line, std::array<std::string_view, 4>& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
        std::size_t end = line.find(':');
        fields[i] = line.substr(0, end);
        if (end == std::string_view::npos) return i + 1 == fields.size();
        line.remove_prefix(end + 1);
    }
    return true;
}

template <class Take>
void for_each_line(std::string_view text, Take take) {
    while (!text.empty()) {
        std::size_t end = text.find('\n');
        std::array<std::string_view, 4> fields;
        if (first_fields(text.substr(0, end), fields)) take(fields);
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
}

bool lists(std::string_view members, std::string_view name) {
    while (!members.empty()) {
        std::size_t comma = members.find(',');
        if (members.substr(0, comma) == name) return true;
        if (comma == std::string_view::npos) return false;
        members.remove_prefix(comma + 1);
    }
    return false;
}

}  // namespace

Accounts Accounts::load() {
    return parse(read_limited("/etc/passwd"), read_limited("/etc/group"));
}

Accounts Accounts::parse(std::string_view passwd, std::string_view group) {
    Accounts accounts;
    for_each_line(passwd, [&](const auto& field) {
        auto id = to_id(field[2]);
        auto primary = to_id(field[3]);
        if (!id || !primary || field[0].empty()) return;
        User user;
        user.name = field[0];
        user.id = *id;
        user.group = *primary;
        accounts.users_.push_back(std::move(user));
    });
    for_each_line(group, [&](const auto& field) {
        auto id = to_id(field[2]);
        if (!id || field[0].empty()) return;
        Group entry;
        entry.name = field[0];
        entry.id = *id;
        entry.members = field[3];
        accounts.groups_.push_back(std::move(entry));
    });
    return accounts;
}

Result<uid_t> Accounts::user_id(std::string_view name) const {
    auto at = std::ranges::find(users_, name, &User::name);
    if (at != users_.end()) return at->id;
    if (auto id = to_id(name)) return *id;
    return Error(ErrorCode::invalid_argument, "owner: there is no user " + std::string(name));
}

Result<gid_t> Accounts::group_id(std::string_view name) const {
    auto at = std::ranges::find(groups_, name, &Group::name);
    if (at != groups_.end()) return at->id;
    if (auto id = to_id(name)) return *id;
    return Error(ErrorCode::invalid_argument, "group: there is no group " + std::string(name));
}

const Accounts::User* Accounts::find_user(uid_t id) const {
    auto at = std::ranges::find(users_, id, &User::id);
    return at == users_.end() ? nullptr : &*at;
}

std::string Accounts::user_name(uid_t id) const {
    const User* user = find_user(id);
    return user ? user->name : std::to_string(id);
}

std::string Accounts::group_name(gid_t id) const {
    auto at = std::ranges::find(groups_, id, &Group::id);
    return at == groups_.end() ? std::to_string(id) : at->name;
}

std::optional<gid_t> Accounts::primary_group(uid_t id) const {
    const User* user = find_user(id);
    if (!user) return std::nullopt;
    return user->group;
}

std::vector<gid_t> Accounts::groups_of(uid_t id, gid_t primary) const {
    std::vector<gid_t> groups{primary};
    const User* user = find_user(id);
    if (!user) return groups;
    for (const Group& group : groups_) {
        if (group.id != primary && lists(group.members, user->name)) groups.push_back(group.id);
    }
    return groups;
}

}  // namespace opensandbox::agent
