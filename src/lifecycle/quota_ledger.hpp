#pragma once

#include "lifecycle/sandbox_index.hpp"
#include "model/quota.hpp"

#include <cstdint>
#include <list>
#include <memory>
#include <string>

namespace opensandbox::lifecycle {

/// What one tenant has, or one sandbox takes.
struct Usage {
    Usage& operator+=(const Usage& other);
    friend bool operator==(const Usage&, const Usage&) = default;

    std::int64_t sandboxes = 0;       ///< all that are listed
    std::int64_t cpu_millicores = 0;  ///< of those that have not ended
    std::int64_t memory_bytes = 0;
};

/// Counts every tenant's sandboxes from the index, together with creates that have no row yet, so
/// that many at once cannot pass a quota that each alone keeps. One event loop. Pure.
class QuotaLedger {
    struct Claim {
        std::string tenant;
        Usage usage;
    };
    using Claims = std::list<Claim>;

  public:
    /// A create on its way to its row; counts until destroyed.
    class Hold {
      public:
        Hold() = default;
        Hold(std::shared_ptr<Claims> claims, Claim claim);
        Hold(Hold&& other) noexcept;
        Hold& operator=(Hold&& other) noexcept;
        ~Hold() { release(); }
        /// It has a row now.
        void release();

      private:
        std::shared_ptr<Claims> claims_;
        Claims::iterator at_;
    };

    /// `resource_exhausted` (SANDBOX::QUOTA_EXCEEDED) with the figures when the tenant would have
    /// more than its quota; `invalid_argument` when a limit that is counted is not stated.
    Result<Hold> claim(const store::SandboxRecord& record, const model::Quota& quota,
                       const SandboxIndex& index);

    [[nodiscard]] Usage usage(const std::string& tenant, const SandboxIndex& index) const;

  private:
    std::shared_ptr<Claims> claims_ = std::make_shared<Claims>();
};

}  // namespace opensandbox::lifecycle
