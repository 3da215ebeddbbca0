#include "server/proxy/proxy_rules.hpp"

#include <boost/asio/ip/address.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

/// X-Forwarded-For, -Proto and -Host, a line of the input each.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    static const std::vector<net::AddressBlock> trusted{
        net::AddressBlock::parse("127.0.0.0/8").value(),
        net::AddressBlock::parse("fd00::/8").value()};
    const std::string text(reinterpret_cast<const char*>(data), size);
    http::Fields fields{{"Host", "own"}};
    std::size_t at = 0;
    for (const char* name : {"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"}) {
        std::size_t end = std::min(text.find('\n', at), text.size());
        fields.add(name, text.substr(at, end - at));
        at = std::min(end + 1, text.size());
    }
    auto stranger = server::origination_of(fields, "192.0.2.1", trusted);
    if (stranger.client != "192.0.2.1" || stranger.scheme != "http" || stranger.host != "own") {
        std::abort();
    }
    auto told = server::origination_of(fields, "127.0.0.1", trusted);
    boost::system::error_code failed;
    boost::asio::ip::make_address(told.client, failed);
    if (failed || (told.scheme != "http" && told.scheme != "https") || told.host.empty() ||
        told.authorized) {
        std::abort();
    }
    return 0;
}
