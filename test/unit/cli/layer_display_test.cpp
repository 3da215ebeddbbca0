#include "cli/layer_display.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;

namespace {

sdk::LayerProgress progress(std::string layer, std::string status, std::uint64_t done,
                            std::uint64_t total) {
    sdk::LayerProgress made;
    made.layer = std::move(layer);
    made.status = std::move(status);
    made.done = done;
    made.total = total;
    return made;
}

}  // namespace

TEST_CASE("the bar of a pull sums up its layers") {
    std::map<std::string, sdk::LayerProgress> layers;
    CHECK(cli::to_bar_text("app:1", layers).find("0 of 0 layers") != std::string::npos);
    layers["a"] = progress("a", "present", 0, 1'000'000);
    layers["b"] = progress("b", "waiting", 0, 1'000'000);
    layers["c"] = progress("c", "downloading", 1'000'000, 2'000'000);
    CHECK(cli::to_bar_text("app:1", layers) ==
          "app:1  [============            ]  2.0 MB of 4.0 MB  1 of 3 layers  downloading");
    for (auto& [name, layer] : layers)
        layer.status = "done";
    CHECK(cli::to_bar_text("app:1", layers) ==
          "app:1  [========================]  4.0 MB of 4.0 MB  3 of 3 layers");
}
