#include "runtime/native/slots/warm_slots.hpp"

#include <catch2/catch.hpp>

#include <chrono>

using namespace opensandbox;
using namespace opensandbox::runtime::native;
using namespace std::chrono_literals;

namespace {

constexpr WarmSlots::Time kStart{1h};

CreateRequest request_for(const std::string& image, const std::string& digest) {
    CreateRequest request;
    request.request = 7;
    request.id = "6f1c3b1e-7f5b-4c0e-9a52-0d3b7a0e1f11";
    request.plan.image.reference = image;
    request.plan.image.digest = digest;
    request.plan.image.layers = {"/"};
    request.plan.image.config.env = {{"PATH", "/bin"}};
    request.plan.environment = {{"PATH", "/bin"}, {"OPENSANDBOX_ID", request.id}};
    request.plan.entrypoint = {"sleep", "1"};
    request.agent_token = "secret";
    request.plan.network.hostname = "6f1c3b1e";
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
    auto order = warm.next(kStart);
    REQUIRE(order);
    CHECK(order->request.id.empty());
    CHECK(order->request.agent_token.empty());
    CHECK(order->request.plan.network.hostname.empty());
    CHECK(order->request.plan.entrypoint.empty());
    CHECK(order->request.plan.environment == order->request.plan.image.config.env);
    CHECK(order->request.warm == "[]");
    // One is begun.
    CHECK_FALSE(warm.next(kStart));
    CHECK_FALSE(warm.take(request_for("python:3", "sha256:a"), kStart));
    CHECK(warm.ready(order->key, {1, 1}));
    const auto taken = warm.take(request_for("python:3", "sha256:a"), kStart + 1s);
    REQUIRE(taken);
    CHECK(taken->serial == 1);
    // Never twice.
    CHECK_FALSE(warm.take(request_for("python:3", "sha256:a"), kStart + 1s));
}

TEST_CASE("only a request that differs in nothing that is fixed by then takes a warm slot",
          "[runtime][warm]") {
    WarmSlots warm;
    std::uint32_t serial = 0;
    warm.keep({request_for("python:3", "sha256:a")});
    fill(warm, kStart, serial);
    const auto refused = [&](auto change) {
        CreateRequest request = request_for("python:3", "sha256:a");
        change(request);
        return !warm.take(request, kStart).has_value();
    };
    CHECK(refused([](CreateRequest& r) { r.plan.image.digest = "sha256:b"; }));
    CHECK(refused([](CreateRequest& r) { r.plan.image.layers = {"/", "/usr"}; }));
    CHECK(refused([](CreateRequest& r) { r.plan.snapshot_layers = {"s"}; }));
    CHECK(refused([](CreateRequest& r) { r.plan.image.config.user = "1000"; }));
    CHECK(refused([](CreateRequest& r) { r.plan.image.config.working_directory = "/srv"; }));
    CHECK(refused([](CreateRequest& r) { r.volumes = {{"v", "/v", "", "/v", false}}; }));
    CHECK(refused([](CreateRequest& r) { r.hooks = "{}"; }));
    CHECK(refused([](CreateRequest& r) { r.warm = R"([{"language":"python"}])"; }));
    CHECK(refused([](CreateRequest& r) { r.warm = ""; }));
}

TEST_CASE("what comes with a sandbox may differ", "[runtime][warm]") {
    WarmSlots warm;
    std::uint32_t serial = 0;
    warm.keep({request_for("python:3", "sha256:a")});
    fill(warm, kStart, serial);
    CreateRequest request = request_for("python:latest", "sha256:a");
    request.id = "other";
    request.plan.environment = {{"A", "1"}};
    request.plan.entrypoint = {"true"};
    request.plan.limits.memory_bytes = 1 << 20;
    request.cpu_request = 2;
    request.plan.network.hostname = "other";
    request.agent_token = "another";
    CHECK(warm.take(request, kStart));
}

TEST_CASE("the number of warm slots follows demand and goes back", "[runtime][warm]") {
    WarmSlots warm;
    std::uint32_t serial = 0;
    const CreateRequest request = request_for("python:3", "sha256:a");
    warm.keep({request});
    CHECK(fill(warm, kStart, serial) == 1);
    // Four at once: one is served, three are not, and after that there are four.
    for (int i = 0; i < 4; ++i)
        (void)warm.take(request, kStart);
    CHECK(fill(warm, kStart, serial) == 4);
    CHECK(warm.surplus(kStart + 30s).empty());
    // In the first period there was the burst itself.
    CHECK(warm.surplus(kStart + 60s).empty());
    CHECK(warm.surplus(kStart + 120s).size() == 2);
    CHECK(warm.surplus(kStart + 180s).size() == 1);
    CHECK(warm.surplus(kStart + 240s).empty());
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
    CHECK_FALSE(warm.take(request, kStart));
    CHECK(fill(warm, kStart, serial) == 1);
    CHECK(warm.take(request, kStart));
    // Another image under the same name takes its place.
    CHECK(fill(warm, kStart, serial) == 1);
    CHECK_FALSE(warm.take(request_for("python:3", "sha256:b"), kStart));
    CHECK(warm.surplus(kStart) == std::vector<SlotId>{{2, 2}});
}

TEST_CASE("slots that nobody wants any more are named once", "[runtime][warm]") {
    WarmSlots warm;
    std::uint32_t serial = 0;
    warm.keep({request_for("a:1", "sha256:a"), request_for("b:1", "sha256:b")});
    CHECK(fill(warm, kStart, serial) == 2);
    CHECK(warm.keep({request_for("a:1", "sha256:a")}).size() == 1);
    CHECK(warm.surplus(kStart).empty());
    auto order = warm.next(kStart);
    CHECK_FALSE(order);
    // Its layers are no longer there.
    CreateRequest removed = request_for("c:1", "sha256:c");
    removed.plan.image.layers = {"/no/such/layer"};
    warm.keep({removed});
    CHECK(warm.surplus(kStart).empty());
    CHECK_FALSE(warm.next(kStart));
}

TEST_CASE("what does not start is tried again later each time", "[runtime][warm]") {
    WarmSlots warm;
    warm.keep({request_for("a:1", "sha256:a")});
    auto order = warm.next(kStart);
    REQUIRE(order);
    warm.failed(order->key, kStart);
    CHECK_FALSE(warm.next(kStart));
    order = warm.next(kStart + 1s);
    REQUIRE(order);
    warm.failed(order->key, kStart + 1s);
    CHECK_FALSE(warm.next(kStart + 2s));
    CHECK(warm.next(kStart + 3s));
    CHECK(warm.reference(order->key) == "a:1");
    runtime::Figures figures;
    warm.tell(figures);
    CHECK(figures.warm_failures == 2);
}

TEST_CASE("a slot that died is not handed out", "[runtime][warm]") {
    WarmSlots warm;
    const CreateRequest request = request_for("a:1", "sha256:a");
    warm.keep({request});
    auto order = warm.next(kStart);
    REQUIRE(order);
    REQUIRE(warm.ready(order->key, {3, 3}));
    warm.gone(order->key, {3, 3});
    CHECK_FALSE(warm.take(request, kStart));
}

TEST_CASE("the images kept warm are bounded", "[runtime][warm]") {
    WarmSlots warm;
    for (std::size_t i = 0; i < WarmSlots::kMaxImages + 5; ++i) {
        const std::string name = "image" + std::to_string(i);
        CHECK_FALSE(warm.take(request_for(name + ":1", "sha256:" + name), kStart));
    }
    runtime::Figures figures;
    warm.tell(figures);
    CHECK(figures.warm_target == WarmSlots::kMaxImages);
}

namespace {

CreateRequest plain(const std::string& image) {
    CreateRequest request = request_for(image + ":1", "sha256:" + image);
    request.warm.clear();
    request.warm_pool = {};
    return request;
}

std::uint64_t mounted_ready(const WarmSlots& warm) {
    runtime::Figures figures;
    warm.tell(figures);
    CHECK(figures.warm_ready == 0);
    return figures.slots_mounted;
}

}  // namespace

TEST_CASE("an image that is asked for again waits mounted in a part of the pool's slots",
          "[runtime][warm]") {
    WarmSlots warm;
    std::uint32_t serial = 0;
    CHECK_FALSE(warm.take(plain("a"), kStart));
    CHECK_FALSE(warm.next(kStart));
    warm.share(3, 60);
    // Many images are asked for but once.
    CHECK_FALSE(warm.take(plain("a"), kStart));
    CHECK_FALSE(warm.next(kStart));
    CHECK_FALSE(warm.take(plain("a"), kStart + 1s));
    CHECK_FALSE(warm.next(kStart + 1s, false));
    CHECK(fill(warm, kStart + 1s, serial) == 1);
    CHECK(warm.mounted() == 1);
    CHECK(mounted_ready(warm) == 1);
    CHECK(warm.take(plain("a"), kStart + 2s));
    CHECK(warm.mounted() == 0);
    // A burst of ten wants more than there may be.
    for (int i = 0; i < 10; ++i)
        CHECK_FALSE(warm.take(plain("a"), kStart + 3s));
    CHECK(fill(warm, kStart + 3s, serial) == 3);
    // Of another image there are none until some of these went.
    CHECK_FALSE(warm.take(plain("b"), kStart + 4s));
    CHECK_FALSE(warm.take(plain("b"), kStart + 5s));
    CHECK_FALSE(warm.next(kStart + 5s));
    warm.share(2, 60);
    CHECK(warm.surplus(kStart + 5s).size() == 1);
    warm.share(3, 60);
    CHECK(fill(warm, kStart + 5s, serial) == 1);
    CHECK(warm.take(plain("b"), kStart + 5s));
}

TEST_CASE("slots of images that nobody asks for any more become blanks again", "[runtime][warm]") {
    WarmSlots warm;
    std::uint32_t serial = 0;
    warm.share(8, 60);
    for (int i = 0; i < 5; ++i)
        (void)warm.take(plain("a"), kStart);
    CHECK(fill(warm, kStart, serial) == 4);
    std::size_t gone = 0;
    for (int minute = 1; minute < 10; ++minute)
        gone += warm.surplus(kStart + minute * 60s).size();
    CHECK(gone == 4);
    CHECK(warm.mounted() == 0);
}

TEST_CASE("what hardly comes twice alike is not mounted ahead", "[runtime][warm]") {
    const auto never = [](auto change) {
        WarmSlots warm;
        warm.share(8, 60);
        CreateRequest request = plain("a");
        change(request);
        for (int i = 0; i < 3; ++i)
            (void)warm.take(request, kStart);
        return !warm.next(kStart).has_value();
    };
    CHECK_FALSE(never([](CreateRequest&) {}));
    CHECK(never([](CreateRequest& r) { r.plan.snapshot_layers = {"s"}; }));
    CHECK(never([](CreateRequest& r) { r.volumes = {{"v", "/v", "", "/v", false}}; }));
    CHECK(never([](CreateRequest& r) { r.hooks = "{}"; }));
    CHECK(never([](CreateRequest& r) { r.plan.network.shared = "/n"; }));
    CHECK(never([](CreateRequest& r) { r.plan.network.published = {80}; }));
}

TEST_CASE("images without slots make room for others", "[runtime][warm]") {
    WarmSlots warm;
    std::uint32_t serial = 0;
    warm.share(8, 60);
    warm.keep({request_for("kept:1", "sha256:kept")});
    for (std::size_t i = 0; i < 3 * WarmSlots::kMaxImages; ++i) {
        const std::string name = "image" + std::to_string(i);
        CHECK_FALSE(warm.take(plain(name), kStart + std::chrono::seconds(i)));
    }
    const auto late = kStart + 1h;
    CHECK_FALSE(warm.take(plain("last"), late));
    CHECK_FALSE(warm.take(plain("last"), late));
    // That of the image that is kept, and one of the last.
    CHECK(fill(warm, late, serial) == 2);
    CHECK(warm.take(plain("last"), late));
    CHECK(warm.take(request_for("kept:1", "sha256:kept"), late));
    warm.clear();
    CHECK(warm.mounted() == 0);
    CHECK_FALSE(warm.next(late));
}
