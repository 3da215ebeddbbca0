#include "model/hook_schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// Schedules of hooks: whatever is one comes after any moment.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto schedule = model::Schedule::parse(text);
    const Timestamp moment{std::chrono::hours(24 * 365 * 56)};
    if (schedule && schedule->next_after(moment) <= moment) std::abort();
    return 0;
}
