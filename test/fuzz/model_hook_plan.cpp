#include "model/hook_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any text is a plan whose hooks have something to run, or an error that says why not.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    auto plan = model::HookPlan::parse({reinterpret_cast<const char*>(data), size});
    if (!plan) {
        if (plan.error().message().empty()) std::abort();
        return 0;
    }
    if (plan->pre_start && plan->pre_start->command.empty()) std::abort();
    for (const auto& periodic : plan->periodic) {
        if (periodic.hook.command.empty() || periodic.hook.timeout.count() <= 0) std::abort();
    }
    return 0;
}
