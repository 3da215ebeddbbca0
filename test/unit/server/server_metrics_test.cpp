#include "server/server_metrics.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::server;

TEST_CASE("client-chosen labels of metrics are bounded") {
    ServerMetrics metrics;
    metrics.record_client_create("OpenSandbox-Python-SDK/1.1.1 httpx", true, 900);
    metrics.record_client_create("curl/8", false, 1);
    for (int i = 0; i < 500; ++i) {
        metrics.record_client_create("OpenSandbox-X-SDK/" + std::to_string(i), true, 1);
    }
    metrics.record_request("BREW", "", 404, std::chrono::milliseconds(1));
    telemetry::Exposition out;
    metrics.write(out);
    REQUIRE_THAT(out.text(),
                 Catch::Contains(R"(sdk_language="python",sdk_version="1.1.1",success="true")"));
    REQUIRE_THAT(out.text(), Catch::Contains(R"(sdk_language="unknown")"));
    REQUIRE_THAT(out.text(), Catch::Contains(R"(sdk_language="other")"));
    REQUIRE_THAT(out.text(), Catch::Contains(R"(method="OTHER",route="unknown",status="404")"));
    std::size_t series = 0;
    std::string needle = "opensandbox_client_create_duration_seconds_count";
    for (auto at = out.text().find(needle); at != std::string::npos;
         at = out.text().find(needle, at + 1)) {
        ++series;
    }
    REQUIRE(series <= 66);
}
