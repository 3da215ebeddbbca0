#pragma once

#include "egress/audit/auditor.hpp"
#include "egress/dns/statistics.hpp"
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

}  // namespace opensandbox::egress
