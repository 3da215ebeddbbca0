#pragma once

#include "egress/vault/binding.hpp"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace opensandbox::egress {

/// Two bindings that one request could match at the same precedence of hosts (exact beats
/// wildcard): their indexes, the lower one first. Empty when each request has at most one. For at
/// most kMaxVaultItems bindings; quick also when they have many hosts, methods and paths in common.
std::optional<std::pair<std::size_t, std::size_t>> find_collision(
    const std::vector<Binding>& bindings);

}  // namespace opensandbox::egress
