#pragma once

#include "http/client.hpp"
#include "http/router.hpp"
#include "image/store.hpp"
#include "lifecycle/lifecycle.hpp"
#include "registry/registries.hpp"
#include "server/config/config.hpp"
#include "server/renew/access_renewer.hpp"
#include "server/request_rooms.hpp"
#include "server/server_metrics.hpp"
#include "server/tenants/tenants.hpp"

#include <boost/asio/thread_pool.hpp>

#include <memory>
#include <string>

namespace opensandbox::server {

/// What the routes work with. Configuration, images and pool are borrowed and outlive the server.
struct Services {
    Services(const Config& c, std::string key, std::shared_ptr<lifecycle::Lifecycle> l,
             image::Store& i, asio::thread_pool& p, asio::any_io_executor executor,
             http::ClientOptions towards_agents = {})
        : config(c),
          api_key(std::move(key)),
          lifecycle_owner(std::move(l)),
          lifecycle(*lifecycle_owner),
          images(i),
          image_pool(p),
          backends(std::move(executor), towards_agents),
          rooms(room_limits(c)) {}

    /// Whose request it is and what that tenant may have.
    [[nodiscard]] lifecycle::Requester requester(const http::Exchange& exchange) const;

    const Config& config;
    std::string api_key;                     ///< empty: no authentication, unless there are tenants
    std::shared_ptr<Tenants> tenants;        ///< null: one tenant
    std::shared_ptr<AccessRenewer> renewer;  ///< null: use does not renew
    std::string public_host;                 ///< of agents, as clients see it
    std::shared_ptr<lifecycle::Lifecycle> lifecycle_owner;
    lifecycle::Lifecycle& lifecycle;
    image::Store& images;
    asio::thread_pool& image_pool;  ///< uploads may hold a thread for long, so not the store's
    registry::Registries* registries = nullptr;  ///< null: images are neither pulled nor pushed
    http::Client backends;                       ///< towards agents
    ServerMetrics metrics;
    RequestRooms rooms;
};

/// Where a router is mounted: "" or "/v1".
using Mount = std::string_view;

void add_sandbox_routes(http::Router& router, Services& services, Mount mount);
/// POST /sandboxes/{id}/pause and /resume.
void add_pause_routes(http::Router& router, Services& services, Mount mount);
/// POST /sandboxes/{id}/fork.
void add_fork_routes(http::Router& router, Services& services, Mount mount);
void add_snapshot_routes(http::Router& router, Services& services, Mount mount);
void add_pool_routes(http::Router& router, Services& services, Mount mount);
/// /sandboxes/{id}/networkpolicy.
void add_network_policy_routes(http::Router& router, Services& services, Mount mount);
void add_endpoint_routes(http::Router& router, Services& services, Mount mount);
void add_proxy_routes(http::Router& router, Services& services, Mount mount);
void add_image_routes(http::Router& router, Services& services, Mount mount);
/// POST /snapshots/{id}/image and /images/tag.
void add_image_derivation_routes(http::Router& router, Services& services, Mount mount);
void add_diagnostics_routes(http::Router& router, Services& services, Mount mount);
/// What the contract has and this server does not: 501, naming what is missing.
void add_unsupported_routes(http::Router& router, Services& services, Mount mount);
/// /openapi.json, /docs and /redoc, bare only, without a key.
void add_docs_routes(http::Router& router);
/// POST /v1/metrics/events.
void add_metrics_event_routes(http::Router& router, Services& services);
/// /health, /version and /metrics, bare only.
void add_service_routes(http::Router& router, Services& services);

}  // namespace opensandbox::server
