#include "agent/api/line_form.hpp"

#include "http/sdk_agent.hpp"

namespace opensandbox::agent {

LineForm line_form_for(std::string_view user_agent) {
    auto sdk = http::parse_sdk_agent(user_agent);
    return sdk && sdk->older_than(1, 1, 0) ? LineForm::stripped : LineForm::exact;
}

LineForm line_form_for(const Services& services, http::Exchange& exchange) {
    if (services.environment.get("EXECD_LEGACY_LINE_EVENTS") == "1") return LineForm::stripped;
    return line_form_for(exchange.request().fields.get("User-Agent").value_or(""));
}

}  // namespace opensandbox::agent
