#pragma once

#include "base/error.hpp"

#include <filesystem>

namespace opensandbox::runtime::native {

/// Files of slots that nobody can use any more: of sandboxes that were deleted, and writable layers
/// of those that a restart of the host ended. They are first put aside, which is quick, and removed
/// when nobody waits, by a later process if need be.
class DiscardedLayers {
  public:
    explicit DiscardedLayers(const std::filesystem::path& sandboxes)
        : directory_(sandboxes / "gone") {}

    /// Takes the layers out of a slot's directory; what the entrypoint wrote and the description
    /// stay there, to be shown until the sandbox is deleted.
    [[nodiscard]] Status put_aside(const std::filesystem::path& slot) const;
    /// Takes the whole directory, with what is mounted in it. Absent is fine.
    [[nodiscard]] Status take(const std::filesystem::path& slot) const;
    /// Whether something waits to be removed.
    [[nodiscard]] bool any() const;
    /// Blocks for as long as the layers are large. What is put aside meanwhile may stay.
    [[nodiscard]] Status remove() const;

  private:
    [[nodiscard]] Status make() const;

    std::filesystem::path directory_;
};

}  // namespace opensandbox::runtime::native
