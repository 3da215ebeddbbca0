#pragma once

#include "base/error.hpp"
#include "net/dns/message.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Whole responses, record by record, for those who change them. Pure; bytes are not trusted.
namespace opensandbox::net::dns {

inline constexpr std::uint16_t kTypeNs = 2;
inline constexpr std::uint16_t kTypeCname = 5;
inline constexpr std::uint16_t kTypeSoa = 6;
inline constexpr std::uint16_t kTypeNull = 10;
inline constexpr std::uint16_t kTypePtr = 12;
inline constexpr std::uint16_t kTypeMx = 15;
inline constexpr std::uint16_t kTypeTxt = 16;
inline constexpr std::uint16_t kTypeSrv = 33;
inline constexpr std::uint16_t kTypeNaptr = 35;
inline constexpr std::uint16_t kTypeDname = 39;
inline constexpr std::uint16_t kTypeDs = 43;
inline constexpr std::uint16_t kTypeRrsig = 46;
inline constexpr std::uint16_t kTypeDnskey = 48;
inline constexpr std::uint16_t kTypeTlsa = 52;
inline constexpr std::uint16_t kTypeSvcb = 64;
inline constexpr std::uint16_t kTypeHttps = 65;
inline constexpr std::uint16_t kTypeIxfr = 251;
inline constexpr std::uint16_t kTypeAxfr = 252;
inline constexpr std::uint16_t kTypeAny = 255;
inline constexpr std::uint16_t kTypeCaa = 257;

/// A record that stands by itself: no pointer in it leads out of it.
struct ResourceRecord {
    std::string owner;  ///< wire form, letters as they came
    std::uint16_t type = 0;
    std::uint16_t dns_class = 0;
    std::uint32_t ttl = 0;  ///< seconds; 0 when the top bit was set (RFC 2181 section 8)
    std::string data;       ///< names in it in wire form
};

/// A response. The additional section is not kept but for what its OPT record adds to the code.
struct Response {
    std::uint16_t id = 0;
    std::uint16_t code = 0;  ///< a ResponseCode, or one of the extended ones up to 4,095
    bool truncated = false;
    bool authentic = false;  ///< the AD flag
    std::string name;        ///< of the question, wire form
    std::uint16_t type = 0;
    std::uint16_t dns_class = 0;
    std::vector<ResourceRecord> answers;
    std::vector<ResourceRecord> authorities;
};

/// `protocol` unless it is a whole response with exactly one question and at most 1,024 records.
/// A truncated one is read as far as it goes.
Result<Response> parse_response(std::string_view message);

struct EncodedResponse {
    std::string bytes;                       ///< its id is 0
    std::vector<std::uint16_t> ttl_offsets;  ///< of each record
    std::size_t answers_end = 0;             ///< offset behind the answer section
};

/// The message with names compressed. `too_large` beyond what TCP carries.
Result<EncodedResponse> encode_response(const Response& response);

/// A query with its question and, with a nonzero `udp_size`, an OPT record.
std::string make_query(std::uint16_t id, std::string_view wire_name, std::uint16_t type,
                       std::uint16_t udp_size, bool dnssec_ok, bool checking_disabled);

/// The name that a CNAME, PTR, NS or DNAME record leads to, in wire form.
inline const std::string& target_of(const ResourceRecord& record) {
    return record.data;
}

}  // namespace opensandbox::net::dns
