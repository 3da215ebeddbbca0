#include "runtime/native/records/record_fields.hpp"

namespace opensandbox::runtime::native {

Result<std::optional<PortPairs>> PortPairsForm::read(const json::object& from,
                                                     std::string_view name) {
    const json::value* list = json::find(from, name);
    if (!list) return std::optional<PortPairs>();
    const Error broken(ErrorCode::invalid_argument, std::string(name) + ": must be pairs of ports");
    const auto port_of = [](const json::value& value) -> std::uint16_t {
        const std::int64_t number = value.is_int64() ? value.get_int64() : 0;
        return number > 0 && number <= 65'535 ? static_cast<std::uint16_t>(number) : 0;
    };
    if (!list->is_array()) return broken;
    PortPairs ports;
    for (const json::value& item : list->get_array()) {
        if (!item.is_array() || item.get_array().size() != 2) return broken;
        const auto& pair = item.get_array();
        ports.emplace_back(port_of(pair[0]), port_of(pair[1]));
        if (ports.back().first == 0 || ports.back().second == 0) return broken;
    }
    return std::optional<PortPairs>(std::move(ports));
}

json::value PortPairsForm::write(const PortPairs& ports) {
    json::array pairs;
    for (const auto& [inside, outside] : ports)
        pairs.push_back({inside, outside});
    return pairs;
}

Result<std::optional<Timestamp>> TicksForm::read(const json::object& from, std::string_view name) {
    auto ticks = json::get_integer(from, name);
    if (!ticks) return ticks.error();
    if (!*ticks) return std::optional<Timestamp>();
    return std::optional<Timestamp>(Timestamp(std::chrono::microseconds(**ticks)));
}

}  // namespace opensandbox::runtime::native
