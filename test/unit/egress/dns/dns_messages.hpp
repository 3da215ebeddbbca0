#pragma once

#include "net/dns/records.hpp"
#include "net/dns/wire_reader.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::egress::dns::test {

namespace codec = net::dns;

inline boost::asio::ip::address address(const std::string& text) {
    return boost::asio::ip::make_address(text);
}

/// "a.b" in wire form.
inline std::string wire(std::string_view name) {
    std::string out;
    while (!name.empty()) {
        const std::size_t size = std::min(name.find('.'), name.size());
        out += static_cast<char>(size);
        out += name.substr(0, size);
        name.remove_prefix(std::min(size + 1, name.size()));
    }
    return out + '\0';
}

inline codec::ResourceRecord record(std::string_view owner, std::uint16_t type, std::string data,
                                    std::uint32_t ttl = 100) {
    codec::ResourceRecord made;
    made.owner = wire(owner);
    made.type = type;
    made.dns_class = codec::kClassInternet;
    made.ttl = ttl;
    made.data = std::move(data);
    return made;
}

inline codec::ResourceRecord address_record(std::string_view owner, const std::string& text,
                                            std::uint32_t ttl = 100) {
    const auto parsed = address(text);
    if (parsed.is_v4()) {
        const auto bytes = parsed.to_v4().to_bytes();
        return record(owner, codec::kTypeA, std::string(bytes.begin(), bytes.end()), ttl);
    }
    const auto bytes = parsed.to_v6().to_bytes();
    return record(owner, codec::kTypeAaaa, std::string(bytes.begin(), bytes.end()), ttl);
}

inline codec::ResourceRecord alias_record(std::string_view owner, std::string_view target,
                                          std::uint32_t ttl = 100) {
    return record(owner, codec::kTypeCname, wire(target), ttl);
}

inline codec::ResourceRecord soa_record(std::string_view owner, std::uint32_t ttl,
                                        std::uint32_t minimum) {
    std::string data = wire("ns.example") + wire("host.example");
    for (int i = 0; i < 4; ++i)
        codec::put_long_word(data, 1);
    codec::put_long_word(data, minimum);
    return record(owner, codec::kTypeSoa, data, ttl);
}

/// A response to a name and type with these answers.
inline codec::Response response(std::string_view name, std::uint16_t type,
                                std::vector<codec::ResourceRecord> answers = {},
                                std::uint16_t code = 0) {
    codec::Response made;
    made.name = wire(name);
    made.type = type;
    made.dns_class = codec::kClassInternet;
    made.code = code;
    made.answers = std::move(answers);
    return made;
}

}  // namespace opensandbox::egress::dns::test
