#pragma once

#include "agent/process/accounts.hpp"

#include <map>
#include <string>

namespace opensandbox::agent {

/// Renders FileInfo objects (execd contract 6.1). User and group names are read once.
class FileInfoWriter {
  public:
    FileInfoWriter() : accounts_(Accounts::load()) {}

    /// Appends the object for `path`, which is not followed when it is a link. `not_found` when
    /// there is nothing.
    Status append(std::string& out, const std::string& path);

  private:
    const std::string& owner(uid_t id);
    const std::string& group(gid_t id);

    Accounts accounts_;
    std::map<uid_t, std::string> owners_;
    std::map<gid_t, std::string> groups_;
};

/// Mode bits as the wire has them: the decimal digits are the octal ones, 0644 is 644.
int mode_to_wire(unsigned mode);
/// The other way; `invalid_argument` for digits 8 and 9 or more than four digits.
Result<unsigned> mode_from_wire(std::int64_t digits);

}  // namespace opensandbox::agent
