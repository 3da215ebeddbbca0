#include "cli/layer_display.hpp"

#include <algorithm>

namespace opensandbox::cli {

namespace {

constexpr std::chrono::milliseconds kLayerRefresh{100};
constexpr std::size_t kWidth = 24;
constexpr std::size_t kShownDigest = 19;  // "sha256:" and twelve digits

bool is_over(const std::string& status) {
    return status == "present" || status == "mounted" || status == "done";
}

}  // namespace

LayerDisplay::LayerDisplay(Terminal& terminal, std::string what)
    : terminal_(terminal), what_(std::move(what)) {}

LayerDisplay::~LayerDisplay() {
    terminal_.clear_progress();
}

void LayerDisplay::update(const sdk::LayerProgress& progress) {
    auto [known, fresh] = layers_.try_emplace(progress.layer);
    const bool changed = fresh || known->second.status != progress.status;
    known->second = progress;
    if (!terminal_.error_is_terminal()) {
        if (!changed) return;
        std::string line = progress.layer.substr(0, kShownDigest) + "  " + progress.status;
        if (progress.total > 0) line += "  " + to_size_text(progress.total);
        terminal_.print_note(line);
        return;
    }
    const auto now = Clock::now();
    if (!changed && now - shown_ < kLayerRefresh) return;
    shown_ = now;
    terminal_.show_progress(to_bar_text(what_, layers_));
}

std::string to_bar_text(std::string_view what,
                        const std::map<std::string, sdk::LayerProgress>& layers) {
    std::uint64_t done = 0, total = 0;
    std::size_t over = 0;
    std::string doing;
    for (const auto& [layer, progress] : layers) {
        total += progress.total;
        done += is_over(progress.status) ? progress.total : std::min(progress.done, progress.total);
        if (is_over(progress.status)) {
            ++over;
        } else if (doing.empty() || doing == "waiting") {
            doing = progress.status;
        }
    }
    const std::size_t filled = total == 0
                                   ? 0
                                   : static_cast<std::size_t>(static_cast<double>(done) /
                                                              static_cast<double>(total) * kWidth);
    std::string text = std::string(what) + "  [" + std::string(std::min(filled, kWidth), '=') +
                       std::string(kWidth - std::min(filled, kWidth), ' ') + "]  " +
                       to_size_text(done) + " of " + to_size_text(total) + "  " +
                       std::to_string(over) + " of " + std::to_string(layers.size()) + " layers";
    if (!doing.empty()) text += "  " + doing;
    return text;
}

}  // namespace opensandbox::cli
