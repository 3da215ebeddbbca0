#include "runtime/native/server/sandbox_buckets.hpp"

#include "base/digest.hpp"
#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/replace_file.hpp"
#include "net/task.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kPrivateDirectory = 0700;
constexpr std::size_t kNameLength = 32;
constexpr const char* kUsesDirectory = "uses";
constexpr const char* kEyFile = "key";

Status make_directory(const fs::path& path) {
    if (::mkdir(path.c_str(), kPrivateDirectory) == 0 || errno == EEXIST) return {};
    return last_error("mkdir " + path.string());
}

std::string format_uses(const std::vector<std::string>& paths) {
    std::string text;
    for (const std::string& path : paths)
        text += fs::path(path).filename().string() + "\n";
    return text;
}

/// Who uses which mounts, by the files in `root`/uses.
std::map<std::string, std::vector<std::string>> read_uses(const fs::path& root) {
    std::map<std::string, std::vector<std::string>> out;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root / kUsesDirectory, error)) {
        std::istringstream lines(read_file_or_empty(entry.path()));
        auto& paths = out[entry.path().filename().string()];
        for (std::string name; std::getline(lines, name);) {
            if (name.size() == kNameLength) paths.push_back((root / name).string());
        }
    }
    return out;
}

/// Mounts that are left, and empty places of such.
std::set<std::string> read_places(const fs::path& root) {
    std::set<std::string> out;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root, error)) {
        if (entry.path().filename().string().size() == kNameLength) out.insert(entry.path());
    }
    return out;
}

}  // namespace

/// Everybody on the host may read where something is mounted, so names tell nothing of credentials
/// without this key.
struct SandboxBuckets::Names {
    std::string key;

    Status read(const fs::path& root) {
        if (!key.empty()) return {};
        std::string known = read_file_or_empty(root / kEyFile);
        if (known.empty()) {
            known = new_hex_id() + new_hex_id();
            if (auto s = replace_file(root / kEyFile, known); !s) return s;
        }
        key = std::move(known);
        return {};
    }
    [[nodiscard]] std::string name(const std::string& digest) const {
        return sha256_hex(key + digest).substr(0, kNameLength);
    }
};

SandboxBuckets::SandboxBuckets(asio::any_io_executor executor, const fs::path& state_directory,
                               AllowedHostPaths allowed)
    : executor_(std::move(executor)),
      root_(state_directory / "buckets"),
      names_(std::make_shared<Names>()),
      mounts_(executor_, [&] {
          BucketPlaces places;
          places.root = root_.string();
          places.path = [root = root_, names = names_](const model::Volume&,
                                                       const std::string& digest) {
              return (root / names->name(digest)).string();
          };
          places.access = BucketAccess::everybody;
          places.allowed_host_paths = std::move(allowed);
          return places;
      }()) {}

Awaitable<void> SandboxBuckets::restore(std::set<std::string> alive) {
    struct Found {
        std::map<std::string, std::vector<std::string>> uses;
        std::set<std::string> places;
    };
    std::error_code error;
    if (!fs::exists(root_, error)) co_return;
    auto found = std::make_shared<Found>();
    std::function<Status()> work = [found, alive, root = root_] {
        found->uses = read_uses(root);
        std::erase_if(found->uses, [&](const auto& use) {
            if (alive.contains(use.first)) return false;
            ::unlink((root / kUsesDirectory / use.first).c_str());
            return true;
        });
        found->places = read_places(root);
        return Status();
    };
    auto read = co_await mounts_.run(std::move(work));
    if (!read) co_return;
    used_ = std::move(found->uses);
    for (const auto& [sandbox, paths] : used_) {
        for (const std::string& path : paths) {
            mounts_.restore(path);
            found->places.erase(path);
        }
    }
    for (const std::string& path : found->places) {
        log::info("a bucket that nobody uses is unmounted", {{"path", path}});
        mounts_.restore(path);
        net::spawn(
            executor_,
            [](BucketMounts& mounts, std::string left) -> Awaitable<void> {
                auto released = co_await mounts.release(left);
                if (!released) {
                    log::error("a bucket stays mounted",
                               {{"path", left}, {"reason", released.error().message()}});
                }
            }(mounts_, path),
            "unmount a bucket");
    }
}

Awaitable<Status> SandboxBuckets::prepare() {
    std::function<Status()> work = [root = root_, names = names_]() -> Status {
        if (auto s = make_directory(root); !s) return s;
        if (auto s = make_directory(root / kUsesDirectory); !s) return s;
        return names->read(root);
    };
    co_return co_await mounts_.run(std::move(work));
}

Awaitable<Status> SandboxBuckets::mount_all(std::shared_ptr<const SandboxSpec> spec,
                                            CreateRequest& request) {
    for (const model::Volume& volume : spec->volumes) {
        if (!std::holds_alternative<model::BucketVolume>(volume.backend)) continue;
        auto path = co_await mounts_.acquire(volume);
        if (!path) co_return path.error();
        used_[spec->id].push_back(*path);
        auto mount = std::ranges::find(request.volumes, volume.name, &VolumeMount::name);
        if (mount != request.volumes.end()) mount->source = *path;
    }
    co_return Status();
}

Awaitable<Status> SandboxBuckets::acquire(std::shared_ptr<const SandboxSpec> spec,
                                          CreateRequest& request) {
    std::vector<const model::Volume*> wanted;
    for (const model::Volume& volume : spec->volumes) {
        if (std::holds_alternative<model::BucketVolume>(volume.backend)) wanted.push_back(&volume);
    }
    if (wanted.empty()) co_return Status();
    auto ready = co_await prepare();
    if (!ready) {
        co_return Error(ErrorCode::internal, "VOLUME::INVALID_OSSFS_MOUNT_ROOT",
                        "volumes." + wanted.front()->name + ".ossfs: " + ready.error().message());
    }
    std::vector<std::string> paths;
    for (const model::Volume* volume : wanted)
        paths.push_back(names_->name(bucket_digest(*volume)));
    // Before anything is mounted, so that a server that comes after this one finds it.
    std::function<Status()> note = [file = root_ / kUsesDirectory / spec->id, paths] {
        return replace_file(file, format_uses(paths));
    };
    auto noted = co_await mounts_.run(std::move(note));
    if (!noted) co_return noted.error().as("VOLUME::OSSFS_MOUNT_FAILED");
    auto mounted = co_await mount_all(spec, request);
    if (!mounted) {
        co_await release(spec->id);
    }
    co_return mounted;
}

Awaitable<void> SandboxBuckets::release(std::string sandbox) {
    auto used = used_.extract(sandbox);
    if (!used.empty()) {
        for (const std::string& path : used.mapped()) {
            auto released = co_await mounts_.release(path);
            if (released) continue;
            log::error("a bucket stays mounted",
                       {{"sandbox", sandbox}, {"reason", released.error().message()}});
        }
    }
    ::unlink((root_ / kUsesDirectory / sandbox).c_str());
}

void SandboxBuckets::cut_off(const std::string& sandbox) {
    auto used = used_.find(sandbox);
    if (used == used_.end()) return;
    for (const std::string& path : used->second) {
        log::warn("a sandbox does not end: its bucket is cut off",
                  {{"sandbox", sandbox}, {"path", path}});
        mounts_.cut_off(path);
    }
}

}  // namespace opensandbox::runtime::native
