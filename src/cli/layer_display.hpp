#pragma once

#include "cli/terminal.hpp"
#include "opensandbox/images.hpp"

#include <chrono>
#include <map>
#include <string>

namespace opensandbox::cli {

/// Shows a pull or push: one line with a bar on a terminal, else a line for each layer whenever its
/// state changes.
class LayerDisplay {
  public:
    LayerDisplay(Terminal& terminal, std::string what);
    ~LayerDisplay();
    LayerDisplay(const LayerDisplay&) = delete;
    LayerDisplay& operator=(const LayerDisplay&) = delete;

    void update(const sdk::LayerProgress& progress);
    [[nodiscard]] sdk::LayerListener listener() {
        return [this](const sdk::LayerProgress& progress) { update(progress); };
    }

  private:
    using Clock = std::chrono::steady_clock;

    Terminal& terminal_;
    std::string what_;
    Clock::time_point shown_{};
    std::map<std::string, sdk::LayerProgress> layers_;
};

/// "NAME  [======>   ]  12.0 MB of 40.0 MB  2 of 5 layers  downloading". Pure.
std::string to_bar_text(std::string_view what,
                        const std::map<std::string, sdk::LayerProgress>& layers);

}  // namespace opensandbox::cli
