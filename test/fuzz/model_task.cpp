#include "model/task.hpp"

#include <cstdint>
#include <cstdlib>

/// Tasks as an executor in a pod reads them, and as controllers read its answers.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    auto tasks = model::parse_tasks(text);
    if (!tasks) return 0;
    auto again = model::parse_tasks(model::tasks_json(*tasks));
    if (!again || again->size() != tasks->size()) std::abort();
    return 0;
}
