#pragma once

#include "base/error.hpp"
#include "model/create_request.hpp"
#include "model/pool.hpp"

#include <string>
#include <string_view>

/// What the sandboxes of a pool are made of, and what a request may add (lifecycle 2.6, 2.9). Pure.
namespace opensandbox::lifecycle {

/// Reads the template of a pool: the fields of a create request that say what a sandbox is (image
/// or snapshotId, entrypoint, env, resourceLimits, metadata…). 400 SANDBOX::INVALID_PARAMETER for
/// what it must not hold: a registry login (it would be stored), another pool or template, a
/// timeout, secrets of volumes.
Result<model::CreateRequest> parse_template(std::string_view text);

/// minimum not above maximum, and the buffer not above the pool: 400 SANDBOX::INVALID_PARAMETER.
Status check_capacity(const model::PoolCapacity& capacity);

/// A request with `extensions.poolRef` as one for a sandbox of its own: the template, with the
/// request's env, metadata, extensions, timeout and entrypoint over it. The template decides
/// limits; another image than its own is refused, and so are networkPolicy, credentialProxy,
/// volumes and isolation.
Result<model::CreateRequest> apply_template(const model::CreateRequest& base,
                                            const model::CreateRequest& request);

/// Whether a sandbox that runs since before the request can be what it asks for: no variables of
/// its own and no other entrypoint (`tail -f /dev/null`, which clients send unasked, is none).
bool fits_idle(const model::CreateRequest& base, const model::CreateRequest& request);

}  // namespace opensandbox::lifecycle
