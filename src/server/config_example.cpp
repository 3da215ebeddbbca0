#include "server/config.hpp"

namespace opensandbox::server {

std::string_view example_config() {
    return R"toml(# Configuration of `opensandbox serve`. Every line is optional; what is commented out shows the
# default. Read from --config, else from $SANDBOX_CONFIG_PATH, else from ~/.sandbox.toml.

[server]
# A numeric address. Beyond loopback the server starts only with an API key.
# host = "127.0.0.1"
# 0 lets the kernel choose; the port is printed when the server is ready.
# port = 8080
# Clients send it as OPEN-SANDBOX-API-KEY. Without this line a key is made at the first start and
# kept in <state_dir>/api-key; "" turns authentication off. The environment variable
# OPENSANDBOX_SERVER_API_KEY wins over this line.
# api_key = "change-me"
# Public host (and port, and path) of sandbox endpoints, when it differs from `host`.
# eip = "sandbox.example.com"
# Longest `timeout` of a create request, in seconds (60 or more); none by default.
# max_sandbox_timeout_seconds = 86400
# Seconds an idle connection is kept.
# timeout_keep_alive = 30
# Seconds that requests in flight get to finish when the server stops; sandboxes live on.
# timeout_graceful_shutdown = 5
# Requests served at once; more are answered 503. 0: no limit.
# limit_concurrency = 1024

[log]
# DEBUG, INFO, WARNING, ERROR or CRITICAL.
# level = "INFO"
# text or json, on standard error.
# format = "text"

[runtime]
# type = "native"

[native]
# Everything the server keeps: store, images, sandboxes, key. /var/lib/opensandbox for root, else
# ~/.opensandbox.
# state_dir = "/var/lib/opensandbox"
# IPv4 network of the sandboxes, /8 to /28; the host takes its first address.
# address_range = "10.77.0.0/16"
# Sandboxes made ready before anybody asks for one (0 to 1000): creates served from them take
# milliseconds.
# pool_size = 8
# IPv4 address of the host on which the agents of sandboxes are reachable.
# publish_host = "127.0.0.1"

[store]
# type = "sqlite"
# In the state directory by default.
# path = "/var/lib/opensandbox/opensandbox.db"

[docker]
# Public host of endpoints when the server itself runs in a container and listens on a wildcard or
# loopback address.
# host_ip = "192.0.2.1"
)toml";
}

}  // namespace opensandbox::server
