// DNS messages of sandboxes and of upstream resolvers, and the text of resolv.conf.
#include "net/dns/message.hpp"
#include "net/dns/resolver_settings.hpp"

#include <cstdint>
#include <string>

using namespace opensandbox::net::dns;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // As large as the input to the byte, so that reading past it shows.
    const std::string message(data, data + size);
    if (const auto query = parse_query(message)) {
        const std::string empty = make_reply(message, *query, ResponseCode::refused);
        if (!answers(empty, query->id, query->question)) __builtin_trap();
        const auto address = boost::asio::ip::make_address("192.0.2.1");
        const std::string full = make_address_reply(message, *query, {address}, 5, kPlainUdp);
        const auto reply = parse_reply(full);
        if (!reply || reply->question != query->question) __builtin_trap();
    }
    if (const auto reply = parse_reply(message)) {
        if (reply->answers.size() > 512) __builtin_trap();
        Query query;
        query.question = reply->question;
        if (size > kPlainUdp && fit_udp(message, query).size() > size) __builtin_trap();
    }
    if (parse_resolver_settings(message).servers.size() > 3) __builtin_trap();
    return 0;
}
