#include "egress/dns/reply.hpp"

#include "net/dns/wire_reader.hpp"

#include <algorithm>

namespace opensandbox::egress::dns {

namespace {

namespace codec = net::dns;

constexpr std::size_t kPlainOpt = 11;
/// What we take ourselves over UDP.
constexpr std::uint16_t kOurUdpSize = 1232;
constexpr std::uint16_t kOptionExtendedError = 15;
constexpr std::uint8_t kBadVersion = 16;
constexpr std::size_t kMaxText = 200;

unsigned char at(std::string_view message, std::size_t i) {
    return static_cast<unsigned char>(message[i]);
}

/// As much of it as may be sent, without half a character at the end.
std::string_view cut(std::string_view text) {
    if (text.size() <= kMaxText) return text;
    std::size_t size = kMaxText;
    while (size > 0 && (at(text, size) & 0xc0) == 0x80)
        --size;
    return text.substr(0, size);
}

void put_opt(std::string& out, const codec::Query& query, std::uint8_t upper_code,
             std::string_view options) {
    out += '\0';
    codec::put_word(out, codec::kTypeOpt);
    codec::put_word(out, kOurUdpSize);
    codec::put_long_word(out, static_cast<std::uint32_t>(upper_code) << 24 |
                                  (query.dnssec_ok ? codec::kDnssecOk : 0U));
    codec::put_word(out, static_cast<std::uint32_t>(options.size()));
    out += options;
    out[11] = 1;
}

std::string option_of(const Refusal& refusal) {
    std::string option;
    if (refusal.info == ExtendedError::none) return option;
    const std::string_view text = cut(refusal.text);
    codec::put_word(option, kOptionExtendedError);
    codec::put_word(option, static_cast<std::uint32_t>(text.size() + 2));
    codec::put_word(option, static_cast<std::uint32_t>(refusal.info));
    option += text;
    return option;
}

/// Id and the flags that a response repeats.
void adopt_head(std::string& out, std::string_view message) {
    out[0] = message[0];
    out[1] = message[1];
    out[2] = static_cast<char>((at(out, 2) & 0xfeU) | (at(message, 2) & 0x01U));
    out[3] = static_cast<char>((at(out, 3) & 0xefU) | (at(message, 3) & 0x10U));
}

void subtract(std::string& out, std::size_t offset, std::uint32_t age) {
    const std::uint32_t ttl = static_cast<std::uint32_t>(at(out, offset)) << 24 |
                              static_cast<std::uint32_t>(at(out, offset + 1)) << 16 |
                              static_cast<std::uint32_t>(at(out, offset + 2)) << 8 |
                              at(out, offset + 3);
    const std::uint32_t left = ttl > age ? ttl - age : 0;
    for (std::size_t i = 0; i < 4; ++i)
        out[offset + i] = static_cast<char>(left >> (24 - 8 * i) & 0xff);
}

void write_head(std::string& out, const codec::Query& query, std::string_view message,
                unsigned char code) {
    out.assign(message.substr(0, query.question_end));
    out[2] = static_cast<char>(0x80U | (at(message, 2) & 0x01U));
    out[3] = static_cast<char>(0x80U | (at(message, 3) & 0x10U) | code);
    std::fill(out.begin() + 6, out.begin() + codec::kHeaderSize, '\0');
}

}  // namespace

std::size_t answer_limit(const codec::Query& query, bool tcp, std::size_t udp_most) {
    if (tcp) return codec::kMaxMessage;
    return std::clamp(query.udp_size, codec::kPlainUdp, std::max(udp_most, codec::kPlainUdp));
}

bool write_answer(const Answer& answer, const codec::Query& query, std::string_view message,
                  std::uint32_t age, std::size_t limit, std::string& out) {
    const bool whole = answer.wire.size() + (query.edns ? kPlainOpt : 0) <= limit &&
                       query.question_end == answer.question_end;
    if (!whole) {
        write_head(out, query, message, answer.code & 0x0f);
        out[2] = static_cast<char>(at(out, 2) | 0x02U);
        if (query.edns) put_opt(out, query, 0, {});
        return false;
    }
    out.assign(answer.wire);
    adopt_head(out, message);
    // Letters of the question come back as they were asked; all else points to them.
    std::copy(message.begin() + codec::kHeaderSize,
              message.begin() + static_cast<std::ptrdiff_t>(query.question_end),
              out.begin() + codec::kHeaderSize);
    if (age != 0) {
        for (const std::uint16_t offset : answer.ttl_offsets)
            subtract(out, offset, age);
    }
    if (query.edns) put_opt(out, query, 0, {});
    return true;
}

void write_refusal(const Refusal& refusal, const codec::Query& query, std::string_view message,
                   std::string& out) {
    write_head(out, query, message, static_cast<unsigned char>(refusal.code));
    if (query.edns) put_opt(out, query, 0, option_of(refusal));
}

void write_bad_version(const codec::Query& query, std::string_view message, std::string& out) {
    write_head(out, query, message, kBadVersion & 0x0f);
    put_opt(out, query, kBadVersion >> 4, {});
}

std::string malformed_reply(std::string_view message) {
    if (message.size() < codec::kHeaderSize || (at(message, 2) & 0x80U) != 0) return {};
    const bool query = (at(message, 2) & 0x78U) == 0;
    std::string out(message.substr(0, 2));
    out += static_cast<char>(0x80U | (at(message, 2) & 0x79U));
    const auto code =
        query ? codec::ResponseCode::format_error : codec::ResponseCode::not_implemented;
    out += static_cast<char>(code);
    out.resize(codec::kHeaderSize, '\0');
    return out;
}

}  // namespace opensandbox::egress::dns
