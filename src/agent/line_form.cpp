#include "agent/line_form.hpp"

#include <charconv>

namespace opensandbox::agent {
namespace {

/// "major.minor…": whether it is below 1.1. Anything unreadable counts as new.
bool below_one_one(std::string_view version) {
    unsigned major = 0;
    unsigned minor = 0;
    const char* end = version.data() + version.size();
    auto first = std::from_chars(version.data(), end, major);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return false;
    auto second = std::from_chars(first.ptr + 1, end, minor);
    if (second.ec != std::errc()) return false;
    return major < 1 || (major == 1 && minor < 1);
}

}  // namespace

LineForm line_form_for(std::string_view user_agent) {
    constexpr std::string_view kMark = "-SDK/";
    std::size_t mark = user_agent.find(kMark);
    if (!user_agent.starts_with("OpenSandbox-") || mark == std::string_view::npos) {
        return LineForm::exact;
    }
    return below_one_one(user_agent.substr(mark + kMark.size())) ? LineForm::stripped
                                                                 : LineForm::exact;
}

LineForm line_form_for(const Services& services, http::Exchange& exchange) {
    if (services.environment.get("EXECD_LEGACY_LINE_EVENTS") == "1") return LineForm::stripped;
    return line_form_for(exchange.request().fields.get("User-Agent").value_or(""));
}

}  // namespace opensandbox::agent
