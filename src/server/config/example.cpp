#include "server/config/config.hpp"

namespace opensandbox::server {

std::string_view config_skeleton() {
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
# Requests with a key served at once, apart from those to sandboxes; more are answered 503. 0: no
# limit.
# limit_concurrency = 1024
# The same for requests to sandboxes that carry no key, only an id. All limits but the first end
# where the descriptors of the process do: these at an eighth of them. /health is never refused.
# limit_concurrency_without_key = 512
# Connections at once, at most half of the descriptors. Where there is no more room the ones that
# wait for a request give way, the longest waiting first.
# limit_connections = 16384
# Seconds after which a client without a key is cut that takes nothing of its answer.
# timeout_send = 60
# Addresses and networks of the proxies in front of this server, such as one that ends TLS: what
# they say in X-Forwarded-For, -Proto and -Host of a request is believed and told to the sandbox.
# What others say there is dropped.
# trusted_proxies = []

[proxy]
# Requests through the server go to a sandbox's own address where it has one. false: through the
# ports that are published on the host.
# resolve_internal = true
# Requests to sandboxes with a key (the server's, or the sandbox's token) at once. 0: no limit.
# limit_concurrency = 1024
# Requests to one sandbox at once, counted apart with and without a key. 0: no limit.
# limit_per_sandbox = 256

[log]
# DEBUG, INFO, WARNING, ERROR or CRITICAL.
# level = "INFO"
# text or json, on standard error.
# format = "text"
# Also into files. A full file is renamed to <name>.1, the older ones count up.
# file_enabled = false
# file_path = "~/logs/opensandbox/server.log"
# One line a request.
# access_file_path = "~/logs/opensandbox/access.log"
# 0: never turned over.
# file_max_bytes = 104857600
# file_backup_count = 5

[runtime]
# type = "native"

[native]
# Everything the server keeps: store, images, sandboxes, key. /var/lib/opensandbox for root, else
# ~/.opensandbox.
# state_dir = "/var/lib/opensandbox"
# IPv4 network of the sandboxes, /8 to /28; the host takes its first address.
# address_range = "10.77.0.0/16"
# Private IPv6 network of the sandboxes, /64 to /112 within fc00::/7; "auto": one of this server's
# own; "none": they have no IPv6. Nor have they any where the host does not forward it
# (net.ipv6.conf.all.forwarding): that setting is left as it is.
# address_range6 = "auto"
# Address of the host, IPv4 or IPv6, on which the agents and the published ports of sandboxes are
# reachable; "::" stands for all of both.
# publish_host = "127.0.0.1"
# Images are pulled from their registry when they are missing; or "always", to have the newest under
# that name; or "never".
# pull = "missing"
# What a sandbox may use whose resourceLimits say nothing of it: how many processes and threads, and
# how many files each of them may have open (by default what the host allows, at most 65536).
# pids = 4096
# open_files = 1024
# Size of the writable layer (resourceLimits.ephemeral-storage); without it a sandbox can fill the
# disk of the state directory. Needs mkfs.ext4 on the host.
# writable_layer = "10Gi"
# Bytes a second over the network, each way, and from and to the disk.
# network_rate = "100Mi"
# io_read_rate = "100Mi"
# io_write_rate = "100Mi"
# "none": sandboxes have no network but their loopback, unless extensions."opensandbox.io/network"
# asks for one.
# network = "default"

[secure_runtime]
# "gvisor": native sandboxes run on gVisor's kernel instead of the host's; runsc (its own release, or
# a build without cgo) must be installed. With the docker runtime "gvisor" or "kata", and
# docker_runtime names the engine's runtime.
# type = ""
# A path, or a name in PATH.
# runsc = "runsc"
# docker_runtime = "runsc"

[registry]
# Of the native runtime. Logins come with the request, from `opensandbox login`, or from
# ~/.docker/config.json and the credential programs that it names.
# PEM file of authorities that registries are checked with, not the system's roots.
# ca_file = "/etc/opensandbox/registry-ca.pem"
# Registries ("HOST" or "HOST:PORT") that ca_file is for; without this line all.
# ca_hosts = ["registry.example:5000"]
# Registries without TLS. Those on this machine need not be named.
# plain_http_hosts = ["registry.example:5000"]

[metrics]
# How many sandboxes, at most, /metrics shows with series of their own to callers with a key (0 to
# 10000).
# sandboxes = 100

[native.pool]
# Sandboxes made ready before anybody asks for one: creates served from them take milliseconds. As
# many as `size` always; after a burst that needed more, up to `max`, as far as addresses and a
# quarter of the free memory reach (1 MiB each). What was not needed for `idle_seconds` goes again,
# by halves. Images that are asked for again wait mounted in most of them; a quarter, at most eight,
# stays for others.
# size = 8
# max = 128
# idle_seconds = 60

[native.warm]
# Images that declare programs to be started ahead, by their label `opensandbox.io/warm` or below,
# have slots of their own, in which the image is mounted and the programs run: the first code of a
# sandbox that comes out of one answers in milliseconds. Per image, as in [native.pool]; max = 0
# turns them off.
# size = 1
# max = 8
# idle_seconds = 60

# [native.warm.images."python:3.12"]
#   programs = [{ language = "python", import = ["json", "numpy"] }]
#   size = 4
#   max = 16

[store]
# type = "sqlite"
# In the state directory by default.
# path = "/var/lib/opensandbox/opensandbox.db"

[renew_intent]
# A sandbox created with extensions."access.renew.extend.seconds" lives at least that much longer
# from each request that reaches it through the server.
# enabled = false
# Seconds between two renewals of one sandbox.
# min_interval_seconds = 60

[renew_intent.redis]
# Intents that gateways push to a Redis list.
# enabled = false
# dsn = "redis://127.0.0.1:6379/0"
# queue_key = "opensandbox:renew:intent"
# consumer_concurrency = 8

[egress]
# What sandboxes with a networkPolicy reach is controlled by the host (native), or by a sidecar of
# each (docker): this program, unless `image` names another.
# image = ""
# The rest is for docker: what its sidecars judge ("dns": names alone, "dns+nft": addresses, too, as
# for native sandboxes always), and where they send metrics.
# mode = "dns+nft"
# disable_ipv6 = true
# readiness_timeout_seconds = 30
# otlp_endpoint = "http://127.0.0.1:4318"

[egress.upstream_proxy]
# Intercepted requests leave through this proxy; sandboxes then need interception.
# url = "http://proxy.example:3128"
# authorization = "Basic …"
# PEM file of an authority that servers are checked with, besides the system's; everybody must be
# able to read it.
# ca_cert_path = "/etc/opensandbox/upstream-ca.pem"

[egress.environment]
# Anything else, by the variables of `opensandbox egress` (specs/egress.yaml).
# OPENSANDBOX_EGRESS_DNS_UPSTREAM = "192.0.2.53"
# OPENSANDBOX_EGRESS_BLOCK_DOH_443 = "true"
# What a request may set in its env as well holds for the requests that do not.
# OPENSANDBOX_EGRESS_DENY_WEBHOOK = "http://127.0.0.1:9000/denied"

[otel]
# Histograms of requests and creates as OTLP over HTTP.
# enabled = false
# The variables of `opensandbox exec --help` count here, too: OTEL_SDK_DISABLED, the temporality and
# the like. Whole URL; it goes before OTEL_EXPORTER_OTLP_METRICS_ENDPOINT and its kin.
# endpoint = "http://127.0.0.1:4318/v1/metrics"
# service_name = "opensandbox-server"
# It goes before OTEL_METRIC_EXPORT_INTERVAL.
# export_interval_millis = 60000

# Several customers, each with keys and sandboxes of its own. The section turns tenants on and
# server.api_key off; the keys of `file` are in $SANDBOX_TENANTS_CONFIG_PATH, else in
# ~/.opensandbox/tenants.toml, which is read again when it changes:
#   [[tenants]]
#   name = "alice"
#   namespace = "team-a"
#   api_keys = ["…"]
#   max_sandboxes = 20          # optional, as in [quotas]
# [tenants]
#   provider = "file"           # or "http": asked with the caller's key
#   endpoint = "http://127.0.0.1:9000/tenant"
#   max_stale_seconds = 300
#   timeout_seconds = 5
#   auth_header = "Authorization"
#   auth_token = "Bearer …"

[quotas]
# Of every tenant that has none of its own, or of the whole server where there are no tenants. A
# create beyond is answered 429. With max_cpu or max_memory every sandbox must state that limit.
# max_sandboxes = 100
# max_cpu = 32
# max_memory = "64Gi"

[docker]
# Public host of endpoints when the server itself runs in a container and listens on a wildcard or
# loopback address.
# host_ip = "192.0.2.1"
)toml";
}

}  // namespace opensandbox::server
