#pragma once

#include "egress/audit/auditor.hpp"
#include "egress/dns/statistics.hpp"
#include "egress/filter/packet_filter.hpp"
#include "egress/intercept/interceptor.hpp"
#include "egress/vault/vault.hpp"
#include "telemetry/exposition.hpp"

namespace opensandbox::egress {

/// What became of queries for names.
void write_names(telemetry::Exposition& out, const dns::Statistics& seen);
/// What was refused, and whether the webhook was told. Every sample has the labels.
void write_denials(telemetry::Exposition& out, const Auditor& auditor,
                   const telemetry::Labels& labels = {});

/// Of a sandbox whose credentials decide what is intercepted.
void write_selections(telemetry::Exposition& out, const Auditor& auditor, VaultStanding standing,
                      const telemetry::Labels& labels = {});

/// What the packet filter did, and holds of all its sandboxes.
void write_filter(telemetry::Exposition& out, const PacketFilter& filter);
void write_learned(telemetry::Exposition& out, std::size_t addresses,
                   const telemetry::Labels& labels = {});
void write_rules(telemetry::Exposition& out, const EffectivePolicy& policy,
                 const telemetry::Labels& labels = {});
void write_interceptor(telemetry::Exposition& out, const Interceptor& interceptor);

}  // namespace opensandbox::egress
