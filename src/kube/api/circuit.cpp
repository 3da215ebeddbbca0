#include "kube/api/circuit.hpp"

namespace opensandbox::kube {

bool Circuit::allows(Clock::time_point now) {
    if (!open()) return true;
    if (now < next_try_) return false;
    next_try_ = now + kBetweenTries;
    return true;
}

void Circuit::unanswered(Clock::time_point now) {
    ++failures_;
    next_try_ = now + kBetweenTries;
}

}  // namespace opensandbox::kube
