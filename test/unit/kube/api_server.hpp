#pragma once

#include "http/message.hpp"
#include "json/document.hpp"
#include "kube/api/client.hpp"
#include "support/catch_result.hpp"
#include "support/http_fixture.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace opensandbox::kube::testing {

/// An API server in memory: objects of any kind at their paths, with resource versions, conditional
/// writes, pages and watches. It knows neither schemas nor namespaces nor who asks, applies only
/// merge patches, and gives what it is told to give when it is to fail.
class ApiServer {
  public:
    /// What is answered to a request instead of what it asks for.
    struct Fault {
        int status = 500;         ///< 0: the connection is cut; -1: nothing is ever answered
        std::string retry_after;  ///< empty: without that field
    };

    explicit ApiServer(http::test::Loop& loop)
        : server_(loop, [this](http::Exchange& exchange) { return answer(exchange); }) {}

    [[nodiscard]] Cluster cluster() const {
        Cluster cluster;
        cluster.server = "http://127.0.0.1:" + std::to_string(server_.port);
        cluster.name_space = "default";
        return cluster;
    }

    /// Writes as somebody else would.
    void put(const std::string& path, json::object object);
    void erase(const std::string& path);
    [[nodiscard]] const json::object& at(const std::string& path) const {
        return objects_.at(path);
    }
    [[nodiscard]] std::size_t size() const { return objects_.size(); }
    [[nodiscard]] std::string version() const { return std::to_string(version_); }

    /// Forgets what happened so far: watches from there are too late.
    void compact() { compacted_ = version_; }
    /// Ends the watches that are open.
    void cut_watches() { ++cuts_; }
    /// Sends a bookmark to the watches that are open.
    void bookmark() { ++bookmarks_; }

    std::deque<Fault> faults;             ///< of the next requests that are no watches
    bool streams_lists = true;            ///< sendInitialEvents is known
    bool ends_watches = false;            ///< every watch ends at once
    std::size_t page_size = 0;            ///< at most so many in one page, when pages are asked for
    std::map<std::string, int> requests;  ///< by method, LIST and WATCH apart
    std::string last_target;
    std::string last_content_type;
    std::string last_authorization;
    std::string expected_authorization;  ///< others are refused with 401; empty: all may come in

  private:
    struct Change {
        std::uint64_t version = 0;
        std::string type;
        std::string path;
        json::object object;
    };

    Awaitable<void> answer(http::Exchange& exchange);
    Awaitable<void> watch(http::Exchange& exchange, std::string path, http::Query query);
    http::Response list(const std::string& path, const http::Query& query);
    http::Response write(const http::RequestHead& head, const std::string& path,
                         const std::string& body);
    http::Response remove(const std::string& path, const std::string& body);
    void record(const std::string& type, const std::string& path);

    std::map<std::string, json::object> objects_;
    std::vector<Change> changes_;
    std::uint64_t version_ = 100;
    std::uint64_t compacted_ = 0;
    std::uint64_t cuts_ = 0;
    std::uint64_t bookmarks_ = 0;
    std::uint64_t uids_ = 0;
    http::test::TestServer server_;
};

/// A connection to it that gives up soon.
inline ConnectionSettings hasty() {
    ConnectionSettings settings;
    settings.read_limit = std::chrono::milliseconds(2'000);
    settings.write_limit = std::chrono::milliseconds(2'000);
    return settings;
}

}  // namespace opensandbox::kube::testing
