#pragma once

#include "opensandbox/connection.hpp"
#include "opensandbox/error.hpp"
#include "opensandbox/images.hpp"
#include "opensandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>

#include <optional>
#include <string>
#include <vector>

namespace opensandbox::sdk {

/// The file system of a sandbox as it was, to start others from (CreateOptions::snapshot_id).
struct SnapshotInfo {
    std::string id;
    std::string sandbox_id;
    std::optional<std::string> name;
    std::string state;  ///< Creating, Ready, Failed or Deleting
    std::optional<std::string> reason;
    std::optional<std::string> message;
    std::optional<TimePoint> last_transition_at;
    TimePoint created_at{};
};

struct SnapshotFilter {
    std::optional<std::string> sandbox_id;
    std::optional<std::string> name;  ///< exactly
    std::vector<std::string> states;  ///< any of them; empty: all
    std::optional<unsigned> page;     ///< from 1
    std::optional<unsigned> page_size;
};

struct SnapshotPage {
    std::vector<SnapshotInfo> items;
    Pagination pagination;
};

/// The snapshots of a server. Cheap to copy.
class Snapshots {
  public:
    explicit Snapshots(Connection connection) : connection_(std::move(connection)) {}

    /// Accepted, not made yet: wait() for it.
    boost::asio::awaitable<Result<SnapshotInfo>> create(std::string sandbox_id,
                                                        std::optional<std::string> name = {}) const;
    boost::asio::awaitable<Result<SnapshotInfo>> get(std::string id) const;
    /// Until it is made or has failed, which is no error of this call; `timeout` after that time.
    boost::asio::awaitable<Result<SnapshotInfo>> wait(std::string id,
                                                      std::chrono::milliseconds limit) const;
    boost::asio::awaitable<Result<SnapshotPage>> list(SnapshotFilter filter = {}) const;
    /// Sandboxes made from it stay.
    boost::asio::awaitable<Status> remove(std::string id) const;
    /// Makes an image of it. Ends when the image is there, however long that takes.
    boost::asio::awaitable<Result<ImageInfo>> make_image(std::string id, std::string reference,
                                                         ImageConfigChange change = {}) const;

  private:
    Connection connection_;
};

}  // namespace opensandbox::sdk
