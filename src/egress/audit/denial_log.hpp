#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace opensandbox::egress {

/// Something that policy refused.
struct DenialRecord {
    enum class Kind : std::uint8_t {
        name,     ///< a query for a name
        address,  ///< a packet, as the packet filter told
        request,  ///< an intercepted connection or a request on one
    };
    DenialRecord() = default;
    DenialRecord(Kind k, std::string t, std::string r)
        : kind(k), target(std::move(t)), reason(std::move(r)) {}

    Kind kind = Kind::name;
    std::string target;          ///< name or address
    std::uint16_t port = 0;      ///< 0: none
    std::string protocol;        ///< "tcp", "https"; of a name, the query's type
    std::string reason;          ///< the rule, or the limit
    std::uint64_t sequence = 0;  ///< from 1; set by the log
    std::chrono::system_clock::time_point time = std::chrono::system_clock::now();
};

/// "name", "address", "request".
std::string_view to_string(DenialRecord::Kind kind);

/// The last denials of a sandbox, with a number each: what a reader missed shows. One event loop.
class DenialLog {
  public:
    explicit DenialLog(std::size_t capacity = 1024) : capacity_(capacity) {}

    /// Keeps it under the next number; the oldest goes when there are too many.
    const DenialRecord& add(DenialRecord record);

    struct Page {
        std::vector<DenialRecord> records;  ///< oldest first
        std::uint64_t next = 0;             ///< for `since` of the next page
        std::uint64_t lost = 0;             ///< behind `since`, but no longer kept
    };
    /// Those with greater numbers than `since`.
    [[nodiscard]] Page since(std::uint64_t since, std::size_t limit) const;
    /// How many there were.
    [[nodiscard]] std::uint64_t total(DenialRecord::Kind kind) const {
        return totals_[static_cast<std::size_t>(kind)];
    }

  private:
    std::size_t capacity_;
    std::deque<DenialRecord> records_;
    std::uint64_t last_ = 0;
    std::uint64_t totals_[3]{};
};

/// `{"denials":[{"sequence","time","kind","target","port","protocol","reason"}],"next","lost"}` on
/// one line; members without a value are left out.
std::string to_json(const DenialLog::Page& page);

}  // namespace opensandbox::egress
