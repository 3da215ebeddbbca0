#pragma once

#include "http/router.hpp"

#include <string_view>

namespace opensandbox::lifecycle {
class Lifecycle;
}

/// Every part of the API adds its routes with what these work with, which outlives the router.
namespace opensandbox::server {

class ServerMetrics;
struct Services;

/// Where a router is mounted: "" or "/v1".
using Mount = std::string_view;

void add_sandbox_routes(http::Router& router, Services& services, Mount mount);
/// POST /sandboxes/{id}/pause and /resume.
void add_pause_routes(http::Router& router, lifecycle::Lifecycle& lifecycle, Mount mount);
/// POST /sandboxes/{id}/fork.
void add_fork_routes(http::Router& router, Services& services, Mount mount);
void add_snapshot_routes(http::Router& router, lifecycle::Lifecycle& lifecycle, Mount mount);
void add_pool_routes(http::Router& router, lifecycle::Lifecycle& lifecycle, Mount mount);
/// /sandboxes/{id}/networkpolicy.
void add_network_policy_routes(http::Router& router, Services& services, Mount mount);
void add_endpoint_routes(http::Router& router, Services& services, Mount mount);
void add_proxy_routes(http::Router& router, Services& services, Mount mount);
void add_image_routes(http::Router& router, Services& services, Mount mount);
/// POST /snapshots/{id}/image and /images/tag.
void add_image_derivation_routes(http::Router& router, Services& services, Mount mount);
void add_diagnostics_routes(http::Router& router, lifecycle::Lifecycle& lifecycle, Mount mount);
/// What the contract has and this server does not: 501, naming what is missing.
void add_unsupported_routes(http::Router& router, lifecycle::Lifecycle& lifecycle, Mount mount);
/// /openapi.json, /docs and /redoc, bare only, without a key.
void add_docs_routes(http::Router& router);
/// POST /v1/metrics/events.
void add_metrics_event_routes(http::Router& router, ServerMetrics& metrics);
/// /health, /version and /metrics, bare only.
void add_service_routes(http::Router& router, Services& services);

}  // namespace opensandbox::server
