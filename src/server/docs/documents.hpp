#pragma once

#include <string_view>

/// What the documentation routes serve; made when the program is built.
namespace opensandbox::server {

/// The OpenAPI documents of specs/ as one JSON document, its version the program's.
std::string_view openapi_document();

/// A page that shows the document and sends requests; it loads nothing from anywhere else.
std::string_view docs_page();

}  // namespace opensandbox::server
