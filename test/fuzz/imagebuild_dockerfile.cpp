#include "imagebuild/plan.hpp"
#include "imagebuild/stage_state.hpp"

#include <cstdint>

/// Parses a Dockerfile and follows every stage: whatever the text is, there is a plan or an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox::imagebuild;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    auto file = parse_dockerfile(text, "Dockerfile");
    if (!file) return 0;
    auto plan = make_plan(*file, {{"A", "b"}}, "");
    if (!plan) return 0;
    for (const PlannedStage& stage : plan->stages) {
        StageState state({}, plan->globals, {{"A", "b"}}, file->escape);
        for (const Instruction& instruction : file->stages[stage.index].instructions) {
            if (!state.apply(instruction)) break;
        }
    }
    return 0;
}
