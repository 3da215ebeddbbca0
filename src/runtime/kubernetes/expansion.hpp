#pragma once

#include <string>
#include <string_view>

/// Variables, commands and arguments of a container are texts in which the kubelet replaces
/// "$(NAME)". Pure.
namespace opensandbox::runtime::kubernetes {

/// The text that the kubelet makes `plain` of.
std::string without_expansion(std::string_view plain);

/// What the kubelet makes of a text in which nothing is replaced.
std::string expanded(std::string_view text);

}  // namespace opensandbox::runtime::kubernetes
