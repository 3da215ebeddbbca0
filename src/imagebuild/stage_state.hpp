#pragma once

#include "imagebuild/dockerfile.hpp"
#include "imagebuild/expansion.hpp"
#include "imagebuild/image_settings.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace opensandbox::imagebuild {

/// Runs a program in the image.
struct RunStep {
    std::vector<std::string> arguments;
    std::string user;
    std::string directory;
    Variables environment;  ///< of the image, and the stage's arguments
    Variables proxies;      ///< added to it; no part of the cache key
};

/// Copies files into the image.
struct CopyStep {
    std::optional<std::string> from;  ///< as written
    std::vector<std::string> sources;
    std::string destination;      ///< absolute
    bool into_directory = false;  ///< the destination is one, whether it exists or not
    bool unpack = false;          ///< ADD: archives are unpacked
    std::string owner;            ///< name or number; empty: as it is
    std::string group;
    std::optional<std::uint32_t> mode;
};

/// Makes a directory unless it is there.
struct DirectoryStep {
    std::string path;
    std::string owner;
    std::string group;
};

/// Nothing: only the image's settings changed.
using Step = std::variant<std::monostate, RunStep, CopyStep, DirectoryStep>;

/// What a stage has come to, instruction by instruction.
class StageState {
  public:
    /// On an image.
    StageState(ImageSettings settings, const Variables& globals, const Variables& build_arguments,
               char escape);
    /// On a finished stage: its SHELL and arguments hold on, too.
    StageState(const StageState& base) = default;
    StageState& operator=(const StageState&) = default;

    /// Takes one instruction and tells what is to be done in the image. The error is the rule
    /// alone. Pure.
    Result<Step> apply(const Instruction& instruction);

    /// A stage of its own begins: its CMD was not given yet.
    void begin() { cmd_given_ = false; }
    [[nodiscard]] const ImageSettings& settings() const { return settings_; }
    /// Build arguments that an ARG has taken.
    [[nodiscard]] const std::vector<std::string>& used_arguments() const { return used_; }

  private:
    Result<std::string> expanded(std::string_view word) const;
    [[nodiscard]] Variables variables() const;
    [[nodiscard]] std::string absolute(const std::string& path) const;
    [[nodiscard]] std::vector<std::string> in_shell(const Instruction& instruction) const;

    Status set_environment(const Instruction& instruction);
    Status set_labels(const Instruction& instruction);
    Status set_arguments(const Instruction& instruction);
    Status set_user(const Instruction& instruction);
    Status expose(const Instruction& instruction);
    Result<Step> enter_directory(const Instruction& instruction);
    Result<Step> copy(const Instruction& instruction);
    Step run(const Instruction& instruction) const;

    ImageSettings settings_;
    Variables globals_;
    Variables build_arguments_;
    char escape_;
    Variables arguments_;  ///< those declared that have a value
    std::vector<std::string> used_;
    std::vector<std::string> shell_{"/bin/sh", "-c"};
    bool cmd_given_ = false;
};

/// HTTP_PROXY and its like: taken without ARG and kept out of image and cache.
bool is_proxy_argument(std::string_view name);

}  // namespace opensandbox::imagebuild
