#include "runtime/native/slot/warm_slots.hpp"

#include <catch2/catch.hpp>

#include <chrono>

using namespace opensandbox;
using namespace opensandbox::runtime::native;
using namespace std::chrono_literals;

namespace {

constexpr WarmSlots::Time start{1h};

CreateRequest request_for(const std::string& image, const std::string& digest) {
    CreateRequest request;
    request.request = 7;
    request.id = "6f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11";
    request.image = image;
    request.digest = digest;
    request.layers = {"/"};
    request.image_env = {{"PATH", "/bin"}};
    request.env = {{"PATH", "/bin"}, {"OPENSANDBOX_ID", request.id}};
    request.entrypoint = {"sleep", "1"};
    request.agent_token = "secret";
    request.hostname = "6f1c3b1e";
    request.warm = "[]";
    request.warm_pool = {1, 4, 60};
    return request;
}

/// Makes all that is wanted now; returns how many that were.
std::uint32_t fill(WarmSlots& warm, WarmSlots::Time now, std::uint32_t& serial) {
    std::uint32_t made = 0;
    while (auto order = warm.next(now)) {
        REQUIRE(warm.ready(order->key, {++serial, serial}));
        ++made;
    }
    return made;
}

}  // namespace

TEST_CASE("an image that is to be kept warm gets its slots, without anything of a sandbox",
          "[runtime][warm]") {
    WarmSlots warm;
    warm.keep({request_for("python:3", "sha256:a")});
    auto order = warm.next(start);
    REQUIRE(order);
    CHECK(order->request.id.empty());
    CHECK(order->request.agent_token.empty());
    CHECK(order->request.hostname.empty());
    CHECK(order->request.entrypoint.empty());
    CHECK(order->request.env == order->request.image_env);
    CHECK(order->request.warm == "[]");
    // One is begun.
    CHECK_FALSE(warm.next(start));
    CHECK_FALSE(warm.take(request_for("python:3", "sha256:a"), start));
    CHECK(warm.ready(order->key, {1, 1}));
    const auto taken = warm.take(request_for("python:3", "sha256:a"), start + 1s);
    REQUIRE(taken);
    CHECK(taken->serial == 1);
    // Never twice.
    CHECK_FALSE(warm.take(request_for("python:3", "sha256:a"), start + 1s));
}

TEST_CASE("only a request that differs in nothing that is fixed by then takes a warm slot",
          "[runtime][warm]") {
    WarmSlots warm;
    std::uint32_t serial = 0;
    warm.keep({request_for("python:3", "sha256:a")});
    fill(warm, start, serial);
    const auto refused = [&](auto change) {
        CreateRequest request = request_for("python:3", "sha256:a");
        change(request);
        return !warm.take(request, start).has_value();
    };
    CHECK(refused([](CreateRequest& r) { r.digest = "sha256:b"; }));
    CHECK(refused([](CreateRequest& r) { r.layers = {"/", "/usr"}; }));
    CHECK(refused([](CreateRequest& r) { r.snapshot_layers = {"s"}; }));
    CHECK(refused([](CreateRequest& r) { r.user = "1000"; }));
    CHECK(refused([](CreateRequest& r) { r.working_directory = "/srv"; }));
    CHECK(refused([](CreateRequest& r) { r.volumes = {{"v", "/v", "", "/v", false}}; }));
    CHECK(refused([](CreateRequest& r) { r.hooks = "{}"; }));
    CHECK(refused([](CreateRequest& r) { r.warm = R"([{"language":"python"}])"; }));
    CHECK(refused([](CreateRequest& r) { r.warm = ""; }));
}

TEST_CASE("what comes with a sandbox may differ", "[runtime][warm]") {
    WarmSlots warm;
    std::uint32_t serial = 0;
    warm.keep({request_for("python:3", "sha256:a")});
    fill(warm, start, serial);
    CreateRequest request = request_for("python:latest", "sha256:a");
    request.id = "other";
    request.env = {{"A", "1"}};
    request.entrypoint = {"true"};
    request.limits.memory_bytes = 1 << 20;
    request.cpu_request = 2;
    request.hostname = "other";
    request.agent_token = "another";
    CHECK(warm.take(request, start));
}

TEST_CASE("the number of warm slots follows demand and goes back", "[runtime][warm]") {
    WarmSlots warm;
    std::uint32_t serial = 0;
    const CreateRequest request = request_for("python:3", "sha256:a");
    warm.keep({request});
    CHECK(fill(warm, start, serial) == 1);
    // Four at once: one is served, three are not, and after that there are four.
    for (int i = 0; i < 4; ++i)
        (void)warm.take(request, start);
    CHECK(fill(warm, start, serial) == 4);
    CHECK(warm.surplus(start + 30s).empty());
    // In the first period there was the burst itself.
    CHECK(warm.surplus(start + 60s).empty());
    CHECK(warm.surplus(start + 120s).size() == 2);
    CHECK(warm.surplus(start + 180s).size() == 1);
    CHECK(warm.surplus(start + 240s).empty());
    runtime::Figures figures;
    warm.tell(figures);
    CHECK(figures.warm_ready == 1);
    CHECK(figures.warm_target == 1);
    CHECK(figures.warm_hits == 1);
    CHECK(figures.warm_misses == 3);
}

TEST_CASE("an image that a create names first is kept warm from then on", "[runtime][warm]") {
    WarmSlots warm;
    std::uint32_t serial = 0;
    const CreateRequest request = request_for("python:3", "sha256:a");
    CHECK_FALSE(warm.take(request, start));
    CHECK(fill(warm, start, serial) == 1);
    CHECK(warm.take(request, start));
    // Another image under the same name takes its place.
    CHECK(fill(warm, start, serial) == 1);
    CHECK_FALSE(warm.take(request_for("python:3", "sha256:b"), start));
    CHECK(warm.surplus(start) == std::vector<SlotId>{{2, 2}});
}

TEST_CASE("slots that nobody wants any more are named once", "[runtime][warm]") {
    WarmSlots warm;
    std::uint32_t serial = 0;
    warm.keep({request_for("a:1", "sha256:a"), request_for("b:1", "sha256:b")});
    CHECK(fill(warm, start, serial) == 2);
    CHECK(warm.keep({request_for("a:1", "sha256:a")}).size() == 1);
    CHECK(warm.surplus(start).empty());
    auto order = warm.next(start);
    CHECK_FALSE(order);
    // Its layers are no longer there.
    CreateRequest removed = request_for("c:1", "sha256:c");
    removed.layers = {"/no/such/layer"};
    warm.keep({removed});
    CHECK(warm.surplus(start).empty());
    CHECK_FALSE(warm.next(start));
}

TEST_CASE("what does not start is tried again later each time", "[runtime][warm]") {
    WarmSlots warm;
    warm.keep({request_for("a:1", "sha256:a")});
    auto order = warm.next(start);
    REQUIRE(order);
    warm.failed(order->key, start);
    CHECK_FALSE(warm.next(start));
    order = warm.next(start + 1s);
    REQUIRE(order);
    warm.failed(order->key, start + 1s);
    CHECK_FALSE(warm.next(start + 2s));
    CHECK(warm.next(start + 3s));
    CHECK(warm.reference(order->key) == "a:1");
    runtime::Figures figures;
    warm.tell(figures);
    CHECK(figures.warm_failures == 2);
}

TEST_CASE("a slot that died is not handed out", "[runtime][warm]") {
    WarmSlots warm;
    const CreateRequest request = request_for("a:1", "sha256:a");
    warm.keep({request});
    auto order = warm.next(start);
    REQUIRE(order);
    REQUIRE(warm.ready(order->key, {3, 3}));
    warm.gone(order->key, {3, 3});
    CHECK_FALSE(warm.take(request, start));
}

TEST_CASE("the images kept warm are bounded", "[runtime][warm]") {
    WarmSlots warm;
    for (std::size_t i = 0; i < WarmSlots::max_images + 5; ++i) {
        const std::string name = "image" + std::to_string(i);
        CHECK_FALSE(warm.take(request_for(name + ":1", "sha256:" + name), start));
    }
    runtime::Figures figures;
    warm.tell(figures);
    CHECK(figures.warm_target == WarmSlots::max_images);
}
