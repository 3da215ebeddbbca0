#include "net/dns/message.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace opensandbox::net::dns {

namespace {

constexpr std::size_t header_size = 12;
constexpr std::size_t max_name = 255;
constexpr std::size_t max_pointers = 64;
constexpr std::size_t max_answers = 512;
constexpr std::uint16_t flag_response = 0x8000;
constexpr std::uint16_t flag_authoritative = 0x0400;
constexpr std::uint16_t flag_truncated = 0x0200;
constexpr std::uint16_t flag_recursion_desired = 0x0100;
constexpr std::uint16_t flag_recursion_available = 0x0080;
constexpr std::uint16_t opcode_mask = 0x7800;
constexpr std::uint16_t code_mask = 0x000f;
constexpr std::uint16_t type_opt = 41;
/// To the question's name, which is always the first.
constexpr std::uint16_t pointer_to_question = 0xc00c;

Error malformed(std::string_view what) {
    return {ErrorCode::protocol, "dns message: " + std::string(what)};
}

/// Walks a message; once it runs past the end everything is zero and `good` false.
class Reader {
  public:
    Reader(std::string_view message, std::size_t at) : message_(message), at_(at) {}

    std::uint8_t byte() {
        if (at_ >= message_.size()) {
            good_ = false;
            return 0;
        }
        return static_cast<std::uint8_t>(message_[at_++]);
    }
    std::uint16_t word() {
        const auto high = static_cast<std::uint16_t>(byte() << 8);
        return static_cast<std::uint16_t>(high | byte());
    }
    std::uint32_t long_word() {
        const auto high = static_cast<std::uint32_t>(word()) << 16;
        return high | word();
    }
    std::string_view bytes(std::size_t count) {
        if (!good_ || count > message_.size() - at_) {
            good_ = false;
            return {};
        }
        const auto taken = message_.substr(at_, count);
        at_ += count;
        return taken;
    }
    std::string name();
    [[nodiscard]] bool good() const { return good_; }
    [[nodiscard]] std::size_t at() const { return at_; }

  private:
    std::string_view message_;
    std::size_t at_;
    bool good_ = true;
};

void append_label(std::string& name, std::string_view label) {
    if (!name.empty()) name += '.';
    for (const char c : label) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '.' || c == '\\') {
            name += '\\';
            name += c;
        } else if (byte > ' ' && byte < 0x7f) {
            name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        } else {
            std::array<char, 5> text{};
            std::snprintf(text.data(), text.size(), "\\%03u", byte);
            name += text.data();
        }
    }
}

/// Follows pointers, which only ever lead backwards, so that it ends.
std::string Reader::name() {
    std::string name;
    std::size_t length = 0;
    std::size_t pointers = 0;
    std::optional<std::size_t> resume;
    while (good_) {
        const std::size_t here = at_;
        const std::uint8_t size = byte();
        if (size == 0) break;
        if ((size & 0xc0) == 0xc0) {
            const std::size_t target = static_cast<std::size_t>(size & 0x3f) << 8 | byte();
            if (!resume) resume = at_;
            if (!good_ || target < header_size || target >= here || ++pointers > max_pointers) {
                good_ = false;
            }
            at_ = target;
            continue;
        }
        if ((size & 0xc0) != 0) good_ = false;
        length += size + 1U;
        if (length >= max_name) good_ = false;
        append_label(name, bytes(size));
    }
    if (resume) at_ = *resume;
    return good_ ? name : std::string();
}

struct Header {
    std::uint16_t id, flags, questions, answers, authorities, additionals;
};

Header read_header(Reader& reader) {
    Header header{};
    header.id = reader.word();
    header.flags = reader.word();
    header.questions = reader.word();
    header.answers = reader.word();
    header.authorities = reader.word();
    header.additionals = reader.word();
    return header;
}

Question read_question(Reader& reader) {
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

RawRecord read_record(Reader& reader) {
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

void put_word(std::string& out, std::uint32_t value) {
    out += static_cast<char>(value >> 8 & 0xff);
    out += static_cast<char>(value & 0xff);
}

/// Header and question of a response.
std::string begin_reply(std::string_view message, const Query& query, std::uint16_t flags,
                        std::size_t answers) {
    std::string out;
    put_word(out, query.id);
    const auto asked = static_cast<std::uint16_t>(static_cast<unsigned char>(message[2]) << 8);
    put_word(out, flag_response | flag_recursion_available | flags |
                      (asked & (opcode_mask | flag_recursion_desired)));
    put_word(out, 1);
    put_word(out, static_cast<std::uint32_t>(answers));
    put_word(out, 0);
    put_word(out, 0);
    out += message.substr(header_size, query.question_end - header_size);
    return out;
}

}  // namespace

Result<Query> parse_query(std::string_view message) {
    if (message.size() > kMaxMessage) return malformed("too long");
    Reader reader(message, 0);
    const Header header = read_header(reader);
    if (!reader.good()) return malformed("shorter than a header");
    if ((header.flags & flag_response) != 0) return malformed("not a query");
    if ((header.flags & opcode_mask) != 0) return malformed("not a standard query");
    if (header.questions != 1) return malformed("must have one question");
    if (header.answers != 0 || header.authorities != 0) return malformed("a query with records");
    Query query;
    query.id = header.id;
    query.question = read_question(reader);
    query.question_end = reader.at();
    if (!reader.good()) return malformed("unreadable question");
    if (header.additionals > 8) return malformed("too many additional records");
    for (int i = 0; i < header.additionals; ++i) {
        const RawRecord raw = read_record(reader);
        if (!reader.good()) return malformed("unreadable additional record");
        // Here the class is the size of the client's buffer.
        if (raw.record.type == type_opt) {
            query.udp_size = std::max<std::size_t>(kPlainUdp, raw.dns_class);
        }
    }
    return query;
}

Result<Reply> parse_reply(std::string_view message) {
    if (message.size() > kMaxMessage) return malformed("too long");
    Reader reader(message, 0);
    const Header header = read_header(reader);
    if (!reader.good()) return malformed("shorter than a header");
    if ((header.flags & flag_response) == 0) return malformed("not a response");
    if (header.questions != 1) return malformed("must have one question");
    Reply reply;
    reply.id = header.id;
    reply.code = static_cast<ResponseCode>(header.flags & code_mask);
    reply.truncated = (header.flags & flag_truncated) != 0;
    reply.question = read_question(reader);
    if (!reader.good()) return malformed("unreadable question");
    if (header.answers > max_answers) return malformed("too many answers");
    for (int i = 0; i < header.answers; ++i) {
        RawRecord raw = read_record(reader);
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
    Reader reader(message, 0);
    const Header header = read_header(reader);
    if (header.id != id || (header.flags & flag_response) == 0 || header.questions != 1) {
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
        size += header_size + bytes.size();
        if (size > limit) break;
        data.push_back(std::move(bytes));
    }
    std::string out = begin_reply(message, query, flag_authoritative, data.size());
    for (const std::string& bytes : data) {
        put_word(out, pointer_to_question);
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
    Reader reader(reply, 0);
    const Header header = read_header(reader);
    (void)read_question(reader);
    if (!reader.good() || header.questions != 1) return {};
    std::string out(reply.substr(0, reader.at()));
    out[2] = static_cast<char>(static_cast<unsigned char>(out[2]) | flag_truncated >> 8);
    std::fill(out.begin() + 6, out.begin() + header_size, '\0');
    return out;
}

}  // namespace opensandbox::net::dns
