// Bytes of a client into the HTTP/2 relay's exchange, its requests answered by a second input.
#include "egress/intercept/http2/exchange.hpp"

using namespace opensandbox;
using namespace opensandbox::egress;

namespace {

class OpenGate final : public InterceptGate {
  public:
    TargetVerdict judge_name(ClientId, std::string_view, std::uint16_t) override {
        return {TargetVerdict::Action::allow, "all"};
    }
    TargetVerdict judge_address(ClientId, const Endpoint&) override {
        return {TargetVerdict::Action::deny, "none"};
    }
    bool leads_to(ClientId, std::string_view, const Endpoint&) override { return true; }
};

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    std::string_view bytes(reinterpret_cast<const char*>(data + 2), size - 2);
    std::size_t cut = std::min<std::size_t>(bytes.size(), data[0] * 16U);
    OpenGate gate;
    RequestRules rules(gate, nullptr, nullptr, false);
    Site site;
    site.tls = true;
    site.host = "a.example";
    site.target = Endpoint(boost::asio::ip::address_v4::loopback(), 443);
    RequestGuard guard(rules, site);
    RelayLimits limits;
    limits.max_header = 4096;
    ClientLoad load;
    {
        Http2Exchange* opened = nullptr;
        Http2Exchange::Signals signals;
        signals.wake = [] {};
        signals.want_upstream = [&](std::string) {
            if (data[1] % 2 == 0) {
                opened->open_upstream();
            } else {
                opened->fail_upstream("away");
            }
        };
        Http2Exchange exchange(guard, limits, load, signals);
        opened = &exchange;
        if (!exchange.open_client()) return 0;
        std::string sent;
        bool sound =
            exchange.client().receive(kPreface) && exchange.client().receive(bytes.substr(0, cut));
        for (int round = 0; sound && round < 4; ++round) {
            sound = exchange.client().collect(sent, sent.size() + 65536);
            if (!sound || exchange.upstream() == nullptr) break;
            sound = exchange.upstream()->collect(sent, sent.size() + 65536);
            std::string_view rest = bytes.substr(cut);
            std::size_t piece = std::min<std::size_t>(rest.size(), 1 + rest.size() / 3);
            if (sound) sound = exchange.upstream()->receive(rest.substr(0, piece));
            cut += piece;
        }
        if (data[1] % 4 == 2 && exchange.upstream() != nullptr) exchange.lose_upstream();
        exchange.client().collect(sent, sent.size() + 65536);
    }
    if (load.bytes != 0) __builtin_trap();
    return 0;
}
