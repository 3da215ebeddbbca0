#include "net/dns/message.hpp"

#include "net/dns/header.hpp"
#include "net/dns/wire_reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace opensandbox::net::dns {

namespace {

constexpr std::size_t kMaxAnswers = 512;
/// To the question's name, which is always the first.
constexpr std::uint16_t kPointerToQuestion = 0xc00c;

struct Header {
    std::uint16_t id, flags, questions, answers, authorities, additionals;
};

Header read_header(WireReader& reader) {
    Header header{};
    header.id = reader.word();
    header.flags = reader.word();
    header.questions = reader.word();
    header.answers = reader.word();
    header.authorities = reader.word();
    header.additionals = reader.word();
    return header;
}

Question read_question(WireReader& reader) {
    Question question;
    question.name = reader.name();
    question.type = reader.word();
    question.dns_class = reader.word();
    return question;
}

struct RawRecord {
    Record record;
    std::uint16_t dns_class = 0;
};

RawRecord read_raw_record(WireReader& reader) {
    RawRecord raw;
    Record& record = raw.record;
    record.name = reader.name();
    record.type = reader.word();
    raw.dns_class = reader.word();
    record.ttl = reader.long_word();
    const std::string_view data = reader.bytes(reader.word());
    if (!reader.good() || raw.dns_class != kClassInternet) return raw;
    boost::asio::ip::address_v4::bytes_type four{};
    boost::asio::ip::address_v6::bytes_type sixteen{};
    if (record.type == kTypeA && data.size() == four.size()) {
        std::memcpy(four.data(), data.data(), four.size());
        record.address = boost::asio::ip::address_v4(four);
    } else if (record.type == kTypeAaaa && data.size() == sixteen.size()) {
        std::memcpy(sixteen.data(), data.data(), sixteen.size());
        record.address = boost::asio::ip::address_v6(sixteen);
    }
    return raw;
}

/// Header and question of a response.
std::string begin_reply(std::string_view message, const Query& query, std::uint16_t flags,
                        std::size_t answers) {
    std::string out;
    put_word(out, query.id);
    const auto asked = static_cast<std::uint16_t>(static_cast<unsigned char>(message[2]) << 8);
    put_word(out, kFlagResponse | kFlagRecursionAvailable | flags |
                      (asked & (kOpcodeMask | kFlagRecursionDesired)));
    put_word(out, 1);
    put_word(out, static_cast<std::uint32_t>(answers));
    put_word(out, 0);
    put_word(out, 0);
    out += message.substr(kHeaderSize, query.question_end - kHeaderSize);
    return out;
}

}  // namespace

Result<Query> parse_query(std::string_view message) {
    if (message.size() > kMaxMessage) return malformed("too long");
    WireReader reader(message, 0);
    const Header header = read_header(reader);
    if (!reader.good()) return malformed("shorter than a header");
    if ((header.flags & kFlagResponse) != 0) return malformed("not a query");
    if ((header.flags & kOpcodeMask) != 0) return malformed("not a standard query");
    if (header.questions != 1) return malformed("must have one question");
    if (header.answers != 0 || header.authorities != 0) return malformed("a query with records");
    Query query;
    query.id = header.id;
    query.checking_disabled = (header.flags & kFlagCheckingDisabled) != 0;
    query.question = read_question(reader);
    query.question_end = reader.at();
    if (!reader.good()) return malformed("unreadable question");
    // There is no name before it. One that points into itself reads otherwise wherever its bytes
    // are sent on with others behind them: what was judged would not be what is asked.
    if (reader.met_pointer()) return malformed("a pointer in the question");
    if (header.additionals > 8) return malformed("too many additional records");
    for (int i = 0; i < header.additionals; ++i) {
        const RawRecord raw = read_raw_record(reader);
        if (!reader.good()) return malformed("unreadable additional record");
        if (raw.record.type != kTypeOpt) continue;
        if (query.edns || !raw.record.name.empty()) return malformed("a wrong OPT record");
        query.edns = true;
        // Here the class is the size of the client's buffer, the TTL holds version and flags.
        query.udp_size = std::max<std::size_t>(kPlainUdp, raw.dns_class);
        query.edns_version = static_cast<std::uint8_t>(raw.record.ttl >> 16 & 0xff);
        query.dnssec_ok = (raw.record.ttl & kDnssecOk) != 0;
    }
    return query;
}

Result<Reply> parse_reply(std::string_view message) {
    if (message.size() > kMaxMessage) return malformed("too long");
    WireReader reader(message, 0);
    const Header header = read_header(reader);
    if (!reader.good()) return malformed("shorter than a header");
    if ((header.flags & kFlagResponse) == 0) return malformed("not a response");
    if (header.questions != 1) return malformed("must have one question");
    Reply reply;
    reply.id = header.id;
    reply.code = static_cast<ResponseCode>(header.flags & kCodeMask);
    reply.truncated = (header.flags & kFlagTruncated) != 0;
    reply.question = read_question(reader);
    if (!reader.good()) return malformed("unreadable question");
    if (header.answers > kMaxAnswers) return malformed("too many answers");
    for (int i = 0; i < header.answers; ++i) {
        RawRecord raw = read_raw_record(reader);
        if (!reader.good()) {
            // What was cut may end anywhere.
            if (reply.truncated) break;
            return malformed("unreadable answer");
        }
        if (raw.dns_class == kClassInternet) reply.answers.push_back(std::move(raw.record));
    }
    return reply;
}

bool answers(std::string_view message, std::uint16_t id, const Question& question) {
    WireReader reader(message, 0);
    const Header header = read_header(reader);
    if (header.id != id || (header.flags & kFlagResponse) == 0 || header.questions != 1) {
        return false;
    }
    const Question echoed = read_question(reader);
    return reader.good() && echoed == question;
}

std::string with_id(std::string_view message, std::uint16_t id) {
    std::string out(message);
    out[0] = static_cast<char>(id >> 8);
    out[1] = static_cast<char>(id & 0xff);
    return out;
}

std::string make_reply(std::string_view message, const Query& query, ResponseCode code) {
    return begin_reply(message, query, static_cast<std::uint16_t>(code), 0);
}

std::string make_address_reply(std::string_view message, const Query& query,
                               const std::vector<boost::asio::ip::address>& addresses,
                               std::uint32_t ttl, std::size_t limit) {
    std::vector<std::string> data;
    std::size_t size = query.question_end;
    for (const auto& address : addresses) {
        std::string bytes;
        if (address.is_v4() && query.question.type == kTypeA) {
            const auto four = address.to_v4().to_bytes();
            bytes.assign(four.begin(), four.end());
        } else if (address.is_v6() && query.question.type == kTypeAaaa) {
            const auto sixteen = address.to_v6().to_bytes();
            bytes.assign(sixteen.begin(), sixteen.end());
        } else {
            continue;
        }
        size += kHeaderSize + bytes.size();
        if (size > limit) break;
        data.push_back(std::move(bytes));
    }
    std::string out = begin_reply(message, query, kFlagAuthoritative, data.size());
    for (const std::string& bytes : data) {
        put_word(out, kPointerToQuestion);
        put_word(out, query.question.type);
        put_word(out, kClassInternet);
        put_word(out, ttl >> 16);
        put_word(out, ttl & 0xffff);
        put_word(out, static_cast<std::uint32_t>(bytes.size()));
        out += bytes;
    }
    return out;
}

std::string fit_udp(std::string_view reply, const Query& query) {
    if (reply.size() <= query.udp_size) return std::string(reply);
    WireReader reader(reply, 0);
    const Header header = read_header(reader);
    (void)read_question(reader);
    if (!reader.good() || header.questions != 1) return {};
    std::string out(reply.substr(0, reader.at()));
    out[2] = static_cast<char>(static_cast<unsigned char>(out[2]) | kFlagTruncated >> 8);
    std::fill(out.begin() + 6, out.begin() + kHeaderSize, '\0');
    return out;
}

}  // namespace opensandbox::net::dns
