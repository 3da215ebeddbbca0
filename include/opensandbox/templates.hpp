#pragma once

#include "opensandbox/connection.hpp"
#include "opensandbox/error.hpp"
#include "opensandbox/sandbox.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::sdk {

/// When a sandbox that is to become a template is taken to be ready.
struct TemplateReadiness {
    std::optional<std::string> probe;  ///< "tcp://127.0.0.1:44772" or "cmd://COMMAND"
    std::optional<std::int64_t> warmup_seconds;
};

/// What to build. `image` and `publish` must be set; what is empty is the server's default.
struct TemplateRequest {
    std::string image;
    std::string publish;  ///< where the artifacts go: "s3://bucket/path"
    std::map<std::string, std::string> resource_limits;
    std::vector<std::string> entrypoint;
    std::map<std::string, std::string> environment;
    std::map<std::string, std::string> metadata;
    std::optional<TemplateReadiness> readiness;
    std::string format;  ///< "native" or "overlaybd"
    /// A whole request body as JSON; when set, it is sent as it stands instead of all above.
    std::string request_body;
};

struct TemplateInfo {
    std::string id;
    std::string image;
    std::string publish;
    std::string format;
    std::string phase;  ///< Pending, Building, Succeeded, Failed, …
    std::optional<std::string> manifest_ref;
    std::optional<std::string> message;
    TimePoint created_at{};
    TimePoint updated_at{};
    std::optional<std::map<std::string, std::string>> resource_limits;
    std::optional<std::vector<std::string>> entrypoint;
    std::optional<std::map<std::string, std::string>> environment;
    std::optional<std::map<std::string, std::string>> metadata;
    std::optional<TemplateReadiness> readiness;
};

struct TemplateFilter {
    std::map<std::string, std::string> metadata;  ///< all of them
    std::optional<unsigned> page;                 ///< from 1
    std::optional<unsigned> page_size;            ///< 1 to 200
};

struct TemplatePage {
    std::vector<TemplateInfo> items;
    Pagination pagination;
};

/// Golden images to start sandboxes from (CreateOptions::template_id). Cheap to copy. A server
/// whose runtime has none answers `unsupported`.
class Templates {
  public:
    explicit Templates(Connection connection) : connection_(std::move(connection)) {}

    /// Accepted, not built yet.
    boost::asio::awaitable<Result<TemplateInfo>> create(TemplateRequest request) const;
    boost::asio::awaitable<Result<TemplateInfo>> get(std::string id) const;
    boost::asio::awaitable<Result<TemplatePage>> list(TemplateFilter filter = {}) const;
    /// Sandboxes made from it stay.
    boost::asio::awaitable<Status> remove(std::string id) const;

  private:
    Connection connection_;
};

}  // namespace opensandbox::sdk
