#pragma once

#include "opensandbox/error.hpp"

#include <functional>
#include <utility>

namespace opensandbox::imagebuild {

/// Lets a build be given up: what runs ends soon, and what was made for it is removed.
class Cancellation {
  public:
    Cancellation() = default;
    Cancellation(const Cancellation&) = delete;
    Cancellation& operator=(const Cancellation&) = delete;

    void cancel() {
        if (std::exchange(requested_, true)) return;
        if (action_) action_();
    }
    [[nodiscard]] bool requested() const { return requested_; }
    [[nodiscard]] static sdk::Error error() {
        return {sdk::ErrorCode::cancelled, "the build was interrupted"};
    }

    /// Calls `action` when cancelled while this exists.
    class Scope {
      public:
        Scope(Cancellation& cancellation, std::function<void()> action)
            : cancellation_(cancellation) {
            cancellation_.action_ = std::move(action);
        }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;
        ~Scope() { cancellation_.action_ = nullptr; }

      private:
        Cancellation& cancellation_;
    };

  private:
    bool requested_ = false;
    std::function<void()> action_;
};

}  // namespace opensandbox::imagebuild
