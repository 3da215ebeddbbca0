#pragma once

#include <string>
#include <utility>
#include <vector>

namespace opensandbox::log {

/// The form that the egress contract (1.8) gives to JSON lines: they begin with `level`, `ts` (with
/// milliseconds), `logger` and `msg`.
struct NamedLogger {
    std::string name;
    /// In every line but those with a value of the same key; never in place of the four.
    std::vector<std::pair<std::string, std::string>> attributes;
};

/// Gives JSON lines that form, with null their own again. Borrowed until it is replaced, by null in
/// the end; called before other threads start.
void use_logger(const NamedLogger* logger);

}  // namespace opensandbox::log
