#pragma once

#include "http/message.hpp"

/// What a sandbox answers through the path proxy comes from the API's own address, and is a
/// stranger there: browsers give its pages an origin of their own, which can neither read nor keep
/// anything of the API's. Programs get what the sandbox said, but for a few fields. Pure.
namespace opensandbox::server {

/// Whether a browser asks: what it sends by itself on every request, and pages cannot change.
bool is_browser(const http::RequestHead& request);

/// Whether the answer would become a service worker, which outlives its page and sees what others
/// of the origin ask for.
bool is_service_worker(const http::RequestHead& request);
/// 403, naming what to use instead.
http::Response no_service_worker();

/// Changes an answer of a sandbox's: no field with effect beyond the answer itself, and a policy
/// that gives a page an opaque origin. Of what a browser would keep under the API's address nothing
/// passes `to_browser`.
void isolate_page(http::Fields& fields, bool to_browser);

}  // namespace opensandbox::server
