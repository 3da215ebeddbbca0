#include "kube/api/back_off.hpp"

#include <algorithm>

namespace opensandbox::kube {

BackOff::Pause BackOff::next() {
    const Pause limit = next_;
    next_ = std::min(next_ * 2, limits_.longest);
    std::uniform_int_distribution<Pause::rep> shorter(0, limit.count() / 2);
    return limit - Pause(shorter(chance_));
}

}  // namespace opensandbox::kube
