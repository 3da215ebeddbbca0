#pragma once

#include "base/error.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace opensandbox::runtime::native {

/// `<state>/volumes`: named directories that outlive sandboxes. All functions block.
class ClaimVolumes {
  public:
    explicit ClaimVolumes(const std::filesystem::path& state_directory)
        : root_(state_directory / "volumes") {}

    /// The rule of claim names: 253 characters of a-z, 0-9, '-' and '.', the first and the last of
    /// them no '-' or '.'.
    static bool is_valid_name(std::string_view name);

    [[nodiscard]] std::filesystem::path path(const std::string& name) const { return root_ / name; }
    /// True when it made the volume. `not_found` (VOLUME::PVC_NOT_FOUND) when there is none and
    /// `create` is false; invalid_argument (VOLUME::INVALID_PVC_NAME).
    [[nodiscard]] Result<bool> ensure(const std::string& name, bool create) const;
    /// Takes back what ensure() made, unless something is in it by now.
    void undo(const std::string& name) const;
    /// The volume is gone at once; remove_gone() takes its time.
    void discard(const std::string& name) const;
    [[nodiscard]] Status remove_gone() const;
    [[nodiscard]] bool has_gone() const;

  private:
    std::filesystem::path root_;
};

}  // namespace opensandbox::runtime::native
