#include "agent/isolated/request.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any JSON makes a session of clean paths and a run that can begin, or errors that say why not.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    auto document = json::parse({reinterpret_cast<const char*>(data), size});
    if (!document) return 0;
    auto session = agent::parse_isolated_session_request(*document);
    if (session) {
        if (session->mounts.empty()) std::abort();
        for (const auto& mount : session->mounts) {
            if (!agent::is_clean_path(mount.path)) std::abort();
        }
        for (const auto& bind : session->binds) {
            if (!agent::is_clean_path(bind.destination)) std::abort();
        }
        if (session->idle_timeout.count() < 0 ||
            session->gid.has_value() > session->uid.has_value())
            std::abort();
        if (!json::parse("{" + session->echo().substr(session->echo().empty() ? 0 : 1) + "}"))
            std::abort();
    } else if (session.error().message().empty()) {
        std::abort();
    }
    auto run = agent::parse_run_request(*document);
    if (run && run->timeout.count() < 0) std::abort();
    if (!run && run.error().message().empty()) std::abort();
    return 0;
}
