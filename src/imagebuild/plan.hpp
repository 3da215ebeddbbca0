#pragma once

#include "imagebuild/dockerfile.hpp"
#include "imagebuild/expansion.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace opensandbox::imagebuild {

/// An image of the server, or "scratch": nothing at all.
struct ImageSource {
    std::string reference;
};
/// An earlier stage, by its place in the Dockerfile.
struct StageSource {
    std::size_t index = 0;
};
using Source = std::variant<ImageSource, StageSource>;

struct PlannedStage {
    std::size_t index = 0;  ///< of Dockerfile::stages
    Source base;
};

/// What to build, in this order; the last one is the target.
struct Plan {
    Variables globals;  ///< ARG before FROM with their values
    std::vector<PlannedStage> stages;
};

inline constexpr std::string_view kScratch = "scratch";

/// Resolves the bases and leaves out the stages that the target does not need. `target` is a
/// stage's name or number; empty: the last one. Errors name file and line. Pure.
Result<Plan> make_plan(const Dockerfile& from, const Variables& build_arguments,
                       std::string_view target);

/// Where a COPY --from of the stage `user` takes from: an earlier stage by name or number, else an
/// image. The error is the rule alone.
Result<Source> resolve_source(const Dockerfile& from, std::string_view name, std::size_t user);

}  // namespace opensandbox::imagebuild
