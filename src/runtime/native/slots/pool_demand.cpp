#include "runtime/native/slots/pool_demand.hpp"

#include <algorithm>

namespace opensandbox::runtime::native {

namespace {

/// Requests closer together than this are one burst.
constexpr std::chrono::milliseconds kBurstGap{250};

}  // namespace

void PoolDemand::configure(PoolSettings settings) {
    settings.max = std::max(settings.max, settings.size);
    settings_ = settings;
    target_ = std::clamp(target_, settings_.size, settings_.max);
}

void PoolDemand::on_take(Time now, std::uint64_t ready, std::uint64_t waiting) {
    if (now - last_take_ > kBurstGap) full_ = ready;
    last_take_ = now;
    // How far the burst went below where it began; what was made meanwhile came in time.
    const std::uint64_t level = full_ + waiting;
    const std::uint64_t needed = level > ready ? level - ready : 0;
    peak_ = std::max(peak_, needed);
    if (needed < target_) return;
    period_start_ = now;
    const auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(needed, settings_.max));
    target_ = std::max(target_, wanted);
}

void PoolDemand::tend(Time now) {
    if (target_ == settings_.size) {
        period_start_ = now;
        peak_ = 0;
        return;
    }
    if (now - period_start_ < std::chrono::seconds(settings_.idle_seconds)) return;
    const auto needed = static_cast<std::uint32_t>(std::min<std::uint64_t>(peak_, target_));
    const std::uint32_t floor = std::max(settings_.size, needed);
    target_ = floor + (target_ - floor) / 2;
    period_start_ = now;
    peak_ = 0;
}

std::uint32_t PoolDemand::target() const {
    return std::min(target_, ceiling_);
}

}  // namespace opensandbox::runtime::native
