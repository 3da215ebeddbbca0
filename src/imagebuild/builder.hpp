#pragma once

#include "imagebuild/cancellation.hpp"
#include "imagebuild/context.hpp"
#include "imagebuild/plan.hpp"
#include "net/stream.hpp"
#include "opensandbox/connection.hpp"
#include "opensandbox/images.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace opensandbox::imagebuild {

struct BuildRequest {
    Dockerfile dockerfile;
    IgnoreRules ignore;
    std::filesystem::path context;
    std::vector<std::string> references;  ///< names of the result; none: one of the cache's
    Variables arguments;
    std::string target;
    bool use_cache = true;
    std::map<std::string, std::string> resource_limits;  ///< of the steps' sandboxes
};

struct BuildResult {
    sdk::ImageInfo image;
    std::size_t steps = 0;   ///< that did something in the image
    std::size_t cached = 0;  ///< of these
    std::vector<std::string> notes;
};

/// Who watches a build.
struct BuildObserver {
    /// A step begins, or was found in the cache. `stage` is its name or number.
    std::function<void(const std::string& stage, const std::string& text, bool cached)> on_step;
    /// What a RUN writes.
    std::function<Awaitable<void>(std::string text)> on_output;
};

/// Builds an image step by step, each in a sandbox made of the image of the one before. Whatever
/// happens, no sandbox and no snapshot of it is left. Errors of an instruction are
/// "file:line: INSTRUCTION: reason".
Awaitable<sdk::Result<BuildResult>> build_image(sdk::Connection connection, BuildRequest request,
                                                BuildObserver observer, Cancellation& cancellation);

}  // namespace opensandbox::imagebuild
