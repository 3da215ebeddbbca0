#pragma once

#include "imagebuild/dockerfile.hpp"

namespace opensandbox::imagebuild {

/// Parses one instruction that is no FROM. The error is the rule alone.
Result<Instruction> parse_instruction(std::string_view verb, std::string_view rest,
                                      const LogicalLine& line, char escape);

/// Flags ("--name=value") at the beginning of an instruction's text, which are cut off.
struct Flags {
    Flags() = default;
    std::vector<std::pair<std::string, std::string>> values;
    std::string_view rest;
};
Flags take_flags(std::string_view text);

}  // namespace opensandbox::imagebuild
