#include "runtime/native/ground/layer/overlay_probe.hpp"

#include "base/remove_tree.hpp"
#include "base/scope_exit.hpp"
#include "runtime/native/ground/kernel/id_map.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/layer/overlay.hpp"

#include <sys/stat.h>

#include <cerrno>

namespace opensandbox::runtime::native {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t kProbeIds = 0x1000'0000;

}  // namespace

Status try_overlay(const fs::path& directory, const fs::path& lower, const OverlayKind& kind) {
    UniqueFd user_namespace;
    if (kind.shift_upper || kind.shift_lower) {
        auto made = make_user_namespace(kProbeIds);
        if (!made) return made.error();
        user_namespace = std::move(*made);
    }
    const fs::path probe = directory / "probe";
    ScopeExit clean([&] { (void)remove_tree(probe); });
    for (const fs::path& path : {probe, probe / "u", probe / "w"}) {
        if (::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) {
            return last_error("mkdir " + path.string());
        }
    }
    auto base = clone_tree(probe, kind.shift_upper ? user_namespace.get() : -1);
    if (!base) return base.error();
    OverlaySpec spec;
    const std::string lower_text = lower.string();
    spec.lowers = {&lower_text, 1};
    spec.user_namespace = user_namespace.get();
    spec.shift_lowers = kind.shift_lower;
    spec.user_attributes = kind.user_attributes;
    spec.base = base->get();
    spec.id_base = kind.shift_upper ? kProbeIds : 0;
    auto overlay = build_overlay(spec);
    return overlay ? Status() : overlay.error();
}

}  // namespace opensandbox::runtime::native
