#pragma once

#include "opensandbox/templates.hpp"

#include <string>
#include <string_view>

/// JSON of templates (lifecycle contract 2.9) to and from the public types.
namespace opensandbox::sdk::wire {

/// `invalid_argument` when image or publish is missing, or request_body is no JSON object.
Result<std::string> encode_template(const TemplateRequest& request);
Result<TemplateInfo> decode_template(std::string_view body);
Result<TemplatePage> decode_template_page(std::string_view body);

}  // namespace opensandbox::sdk::wire
