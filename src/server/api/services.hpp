#pragma once

#include "http/client.hpp"
#include "http/exchange.hpp"
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

/// What the routes work with; some take only a part of it. Configuration, images and pool are
/// borrowed and outlive the server.
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

}  // namespace opensandbox::server
