#pragma once

#include "server/config/config.hpp"
#include "server/config/reader.hpp"

/// One function a section of the configuration, each in a file of its own.
namespace opensandbox::server {

void read_server(ConfigReader& reader, Config& config);              ///< [server], [proxy]
void read_log(ConfigReader& reader, Config& config);                 ///< [log]
void read_native(ConfigReader& reader, Config& config);              ///< [native]
void read_registry(ConfigReader& reader, Config& config);            ///< [registry], native.pull
void read_docker(ConfigReader& reader, Config& config);              ///< [docker], [egress]
void read_egress_environment(ConfigReader& reader, Config& config);  ///< [egress.environment]
void read_storage(ConfigReader& reader, Config& config);             ///< [storage]
void read_runtime(ConfigReader& reader, Config& config);       ///< [runtime], [secure_runtime]
void read_store(ConfigReader& reader, Config& config);         ///< [store]
void read_ingress(ConfigReader& reader, Config& config);       ///< [ingress]
void read_renew_intent(ConfigReader& reader, Config& config);  ///< [renew_intent]
void read_otel(ConfigReader& reader, Config& config);          ///< [otel]
void read_tenants(ConfigReader& reader, Config& config);       ///< [tenants]
void read_quotas(ConfigReader& reader, Config& config);        ///< [quotas]

/// [secure_runtime], for the docker runtime.
void read_secure_runtime(ConfigReader& reader, Config& config);

/// The keys of a quota under `section` ("quotas", or a row of the tenants file).
void read_quota(ConfigReader& reader, const std::string& section, model::Quota& quota);

/// Four numbers of 0 to 255.
bool is_ipv4(std::string_view text);
/// IPv4 network of /8 to /28.
bool is_address_range(std::string_view text);

}  // namespace opensandbox::server
