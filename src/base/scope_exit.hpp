#pragma once

#include <utility>

namespace opensandbox {

/// Runs `undo` when it goes out of scope unless dismissed: the undo step of a multi-step action.
template <class F>
class ScopeExit {
  public:
    explicit ScopeExit(F undo) : undo_(std::move(undo)) {}
    ScopeExit(const ScopeExit&) = delete;
    ScopeExit& operator=(const ScopeExit&) = delete;
    ~ScopeExit() {
        if (armed_) undo_();
    }
    void dismiss() { armed_ = false; }

  private:
    F undo_;
    bool armed_ = true;
};

}  // namespace opensandbox
