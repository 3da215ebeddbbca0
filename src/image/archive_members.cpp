#include "image/archive_members.hpp"

#include "image/archive_reader.hpp"
#include "image/manifest.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace opensandbox::image {
namespace {

constexpr std::size_t kMostMembers = 65536;
constexpr int kMostLinks = 8;

/// "./a//b" and "a/b" are one member. Empty when the name leaves the archive.
std::string plain_name(std::string_view raw) {
    std::string name = std::filesystem::path(raw).lexically_normal().generic_string();
    while (name.ends_with('/'))
        name.pop_back();
    if (name == "." || name == ".." || name.starts_with("../") || name.starts_with('/')) return {};
    return name;
}

constexpr auto kRootDirectories = std::to_array<std::string_view>({
    "bin", "boot", "dev",  "etc", "home", "lib", "lib32", "lib64", "libx32", "media", "mnt",
    "opt", "proc", "root", "run", "sbin", "srv", "sys",   "tmp",   "usr",    "var",   ".dockerenv",
});

}  // namespace

bool is_root_name(std::string_view name) {
    while (name.starts_with("./") || name.starts_with('/'))
        name.remove_prefix(name[0] == '.' ? 2 : 1);
    std::string_view top = name.substr(0, name.find('/'));
    return std::ranges::find(kRootDirectories, top) != kRootDirectories.end();
}

bool ArchiveMembers::looks_like_root() const {
    auto is_root = [](const auto& member) { return is_root_name(member.first); };
    return std::ranges::any_of(sizes_, is_root) || std::ranges::any_of(links_, is_root);
}

Result<ArchiveMembers> ArchiveMembers::scan(int fd) {
    ArchiveMembers members;
    members.fd_ = fd;
    FileInput input(fd);
    ArchiveReader reader(input, ArchiveReader::Kind::tar);
    for (;;) {
        auto entry = reader.next();
        if (!entry) return entry.error();
        if (!*entry) return members;
        const char* raw = archive_entry_pathname(*entry);
        std::string name = plain_name(raw ? raw : "");
        if (name.empty()) continue;
        if (const char* target = archive_entry_hardlink(*entry)) {
            members.links_.try_emplace(name, plain_name(target));
        } else if (const char* symlink = archive_entry_symlink(*entry)) {
            auto directory = std::filesystem::path(name).parent_path();
            members.links_.try_emplace(name, plain_name((directory / symlink).generic_string()));
        } else if (archive_entry_filetype(*entry) == AE_IFREG) {
            members.sizes_.try_emplace(name, archive_entry_size(*entry));
        }
        if (members.sizes_.size() + members.links_.size() > kMostMembers) {
            members.sizes_.clear();
            members.links_.clear();
            return members;
        }
    }
}

std::string ArchiveMembers::resolve(std::string_view name) const {
    std::string at = plain_name(name);
    for (int i = 0; i < kMostLinks; ++i) {
        if (sizes_.contains(at)) return at;
        auto link = links_.find(at);
        if (link == links_.end()) return {};
        at = link->second;
    }
    return {};
}

Result<std::string> ArchiveMembers::read(std::string_view name) const {
    std::string member = resolve(name);
    if (member.empty()) {
        return Error(ErrorCode::invalid_argument,
                     "the archive does not hold " + in_quotes(name) + ", which it refers to");
    }
    if (sizes_.find(member)->second > kLargestDocument) {
        return Error(ErrorCode::too_large,
                     in_quotes(name) + ": a JSON document must not be larger than 4 MiB");
    }
    std::string content;
    auto collect = [&](const std::string&, InputStream& data, std::uint64_t size) -> Status {
        content.resize(size);
        std::size_t length = 0;
        while (length < content.size()) {
            auto count = data.read(std::span(content).subspan(length));
            if (!count) return count.error();
            if (*count == 0) break;
            length += *count;
        }
        content.resize(length);
        return {};
    };
    if (auto status = visit({member}, collect); !status) return status.error();
    return content;
}

Status ArchiveMembers::visit(const std::set<std::string>& names, const Visitor& visit) const {
    std::set<std::string_view> left(names.begin(), names.end());
    FileInput input(fd_);
    ArchiveReader reader(input, ArchiveReader::Kind::tar);
    while (!left.empty()) {
        auto entry = reader.next();
        if (!entry) return entry.error();
        if (!*entry) {
            return Error(ErrorCode::internal, "a member of the archive vanished between two reads");
        }
        const char* raw = archive_entry_pathname(*entry);
        std::string name = plain_name(raw ? raw : "");
        if (archive_entry_filetype(*entry) != AE_IFREG || archive_entry_hardlink(*entry)) continue;
        if (left.erase(name) == 0) continue;
        EntryInput data(reader);
        auto size = static_cast<std::uint64_t>(archive_entry_size(*entry));
        if (auto status = visit(name, data, size); !status) return status;
    }
    return {};
}

}  // namespace opensandbox::image
