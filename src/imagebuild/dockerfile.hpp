#pragma once

#include "imagebuild/dockerfile_lines.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::imagebuild {

enum class Verb : std::uint8_t {
    add,
    arg,
    cmd,
    copy,
    entrypoint,
    env,
    expose,
    label,
    run,
    shell,
    user,
    workdir,
};

/// One instruction of a stage as it is written; variables are not replaced yet.
struct Instruction {
    Verb verb = Verb::run;
    std::size_t line = 0;
    std::string text;  ///< for people, on one line
    /// The JSON form of RUN, CMD, ENTRYPOINT, COPY and ADD.
    bool exec_form = false;
    /// COPY, ADD: sources, then the destination. EXPOSE: ports. RUN, CMD, ENTRYPOINT, SHELL: the
    /// arguments, or the one command text. USER, WORKDIR: the one value.
    std::vector<std::string> words;
    /// ENV, LABEL: names with values. ARG: names, with values where they have one.
    std::vector<std::pair<std::string, std::optional<std::string>>> pairs;
    // COPY and ADD only.
    std::optional<std::string> from;
    std::optional<std::string> chown;
    std::optional<std::string> chmod;
};

struct Stage {
    std::size_t line = 0;
    std::string base;  ///< as written
    std::string name;  ///< lower case; empty without AS
    std::vector<Instruction> instructions;
};

struct Dockerfile {
    std::string file;
    char escape = '\\';
    std::vector<Instruction> global_arguments;  ///< ARG before the first FROM
    std::vector<Stage> stages;                  ///< at least one
};

/// Parses a whole Dockerfile. What is no part of the subset is refused by name. Every error is
/// "file:line: INSTRUCTION: rule". Pure.
Result<Dockerfile> parse_dockerfile(std::string_view text, std::string file);

std::string_view to_string(Verb verb);

// What it is made of (instruction_parser.cpp).

/// Parses one instruction that is no FROM. The error is the rule alone.
Result<Instruction> parse_instruction(std::string_view verb, std::string_view rest,
                                      const LogicalLine& line, char escape);

/// Flags ("--name=value") at the beginning of an instruction's text, which are cut off.
struct Flags {
    std::vector<std::pair<std::string, std::string>> values;
    std::string_view rest;
};
Flags take_flags(std::string_view text);

}  // namespace opensandbox::imagebuild
