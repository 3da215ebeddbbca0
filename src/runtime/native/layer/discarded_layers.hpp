#pragma once

#include "base/error.hpp"

#include <filesystem>

namespace opensandbox::runtime::native {

/// Writable layers of sandboxes that a restart of the host ended: nobody can use them any more.
/// They are first put aside, which is quick, and removed when nobody waits.
class DiscardedLayers {
  public:
    explicit DiscardedLayers(const std::filesystem::path& sandboxes)
        : directory_(sandboxes / "gone") {}

    /// Takes the layers out of a slot's directory; what the entrypoint wrote and the description
    /// stay there, to be shown until the sandbox is deleted.
    Status put_aside(const std::filesystem::path& slot) const;
    /// Whether something waits to be removed.
    [[nodiscard]] bool any() const;
    /// Blocks for as long as the layers are large.
    [[nodiscard]] Status remove() const;

  private:
    std::filesystem::path directory_;
};

}  // namespace opensandbox::runtime::native
