#pragma once

#include "json/document.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::json {

/// Which members of a document are kept. A path ("items.metadata.name") names a member by the
/// members that it lies in; all that is below it is kept with it. Lists are no part of a path: it
/// goes into each of their elements.
class Selection {
  public:
    explicit Selection(const std::vector<std::string>& paths);

    /// What is selected below a member; null: nothing.
    [[nodiscard]] const Selection* below(std::string_view name) const;
    /// Whether all that lies here is kept.
    [[nodiscard]] bool all() const { return all_; }

  private:
    std::map<std::string, std::unique_ptr<Selection>, std::less<>> members_;
    bool all_ = false;
};

/// As parse(), with its limits and its errors, but only what is selected is built; all else is
/// checked and forgotten. What is no object or list where a path goes on stays as it is, so that
/// its reader sees what stands there.
Result<value> parse_selected(std::string_view text, const Selection& selection);

}  // namespace opensandbox::json
