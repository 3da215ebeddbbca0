#include "net/dns/records.hpp"

#include "net/dns/header.hpp"
#include "net/dns/wire_reader.hpp"

#include <map>
#include <optional>

namespace opensandbox::net::dns {

namespace {

constexpr std::size_t kMaxRecords = 1024;

/// Where names lie in the data of a type: so many bytes, so many names, then bytes to the end.
struct Layout {
    std::size_t before = 0;
    std::size_t names = 0;
    bool rest = false;          ///< whether bytes may follow
    bool compressible = false;  ///< of RFC 1035, so that every reader follows pointers in it
};

/// Of the types whose names may be compressed by some sender (RFC 3597 section 4).
std::optional<Layout> layout_of(std::uint16_t type) {
    switch (type) {
        case kTypeNs:
        case 3:  // MD
        case 4:  // MF
        case kTypeCname:
        case 7:  // MB
        case 8:  // MG
        case 9:  // MR
        case kTypePtr: return Layout{0, 1, false, true};
        case kTypeSoa: return Layout{0, 2, true, true};
        case 14: return Layout{0, 2, false, true};  // MINFO
        case kTypeMx: return Layout{2, 1, false, true};
        case 17: return Layout{0, 2, false, false};  // RP
        case 18:                                     // AFSDB
        case 21:                                     // RT
        case 36: return Layout{2, 1, false, false};  // KX
        case 24:                                     // SIG
        case kTypeRrsig: return Layout{18, 1, true, false};
        case 26: return Layout{2, 2, false, false};  // PX
        case 30:                                     // NXT
        case 47: return Layout{0, 1, true, false};   // NSEC
        case kTypeSrv: return Layout{6, 1, false, false};
        case kTypeDname: return Layout{0, 1, false, false};
        default: return std::nullopt;
    }
}

/// Three texts lie before the name of a NAPTR record.
std::size_t before_naptr_name(WireReader reader) {
    const std::size_t start = reader.at();
    (void)reader.long_word();
    for (int text = 0; text < 3; ++text)
        (void)reader.bytes(reader.byte());
    return reader.at() - start;
}

/// The data of `size` bytes at the reader with its names uncompressed; nothing when malformed.
std::optional<std::string> read_data(WireReader& reader, std::uint16_t type, std::size_t size) {
    const std::size_t end = reader.at() + size;
    std::optional<Layout> layout = layout_of(type);
    if (type == kTypeNaptr) layout = Layout{before_naptr_name(reader), 1, false, false};
    if (!layout) {
        const std::string_view data = reader.bytes(size);
        const bool wrong =
            (type == kTypeA && data.size() != 4) || (type == kTypeAaaa && data.size() != 16);
        if (!reader.good() || wrong) return std::nullopt;
        return std::string(data);
    }
    std::string data(reader.bytes(layout->before));
    for (std::size_t i = 0; i < layout->names; ++i)
        data += reader.wire_name();
    if (!reader.good() || reader.at() > end) return std::nullopt;
    const std::string_view rest = reader.bytes(end - reader.at());
    const bool wrong = (!layout->rest && !rest.empty()) || (type == kTypeSoa && rest.size() != 20);
    if (!reader.good() || wrong) return std::nullopt;
    data += rest;
    return data;
}

std::optional<ResourceRecord> read_record(WireReader& reader) {
    ResourceRecord record;
    record.owner = reader.wire_name();
    record.type = reader.word();
    record.dns_class = reader.word();
    record.ttl = reader.long_word();
    const std::size_t size = reader.word();
    if (!reader.good()) return std::nullopt;
    auto data = read_data(reader, record.type, size);
    if (!data) return std::nullopt;
    record.data = std::move(*data);
    return record;
}

/// Clears `good` when a record cannot be read.
std::vector<ResourceRecord> read_section(WireReader& reader, std::size_t count, bool& good) {
    std::vector<ResourceRecord> records;
    for (std::size_t i = 0; good && i < count; ++i) {
        auto record = read_record(reader);
        if (record && record->type != kTypeOpt && (record->ttl >> 31) != 0) record->ttl = 0;
        if (record) {
            records.push_back(std::move(*record));
        } else {
            good = false;
        }
    }
    return records;
}

/// Appends names, pointing to what was written before.
class Writer {
  public:
    explicit Writer(std::string& out) : out_(&out) {}

    void name(std::string_view wire, bool compress) {
        std::string lower = lower_case(wire);
        for (std::size_t at = 0; at < wire.size();) {
            const auto size = static_cast<std::uint8_t>(wire[at]);
            if (size == 0) break;
            std::string suffix = lower.substr(at);
            const auto known = known_.find(suffix);
            if (compress && known != known_.end()) {
                put_word(*out_, 0xc000U | known->second);
                return;
            }
            // A pointer has 14 bits.
            if (known == known_.end() && out_->size() < 0x4000) {
                known_.emplace(std::move(suffix), static_cast<std::uint16_t>(out_->size()));
            }
            *out_ += wire.substr(at, size + 1U);
            at += size + 1U;
        }
        *out_ += '\0';
    }

  private:
    std::string* out_;
    std::map<std::string, std::uint16_t> known_;
};

void write_data(Writer& writer, std::string& out, const ResourceRecord& record) {
    const auto layout = layout_of(record.type);
    if (!layout || !layout->compressible) {
        out += record.data;
        return;
    }
    out += record.data.substr(0, layout->before);
    WireReader reader(record.data, layout->before);
    for (std::size_t i = 0; i < layout->names; ++i)
        writer.name(reader.wire_name(), true);
    out += record.data.substr(reader.at());
}

void write_record(Writer& writer, EncodedResponse& encoded, const ResourceRecord& record) {
    std::string& out = encoded.bytes;
    writer.name(record.owner, true);
    put_word(out, record.type);
    put_word(out, record.dns_class);
    encoded.ttl_offsets.push_back(static_cast<std::uint16_t>(out.size()));
    put_long_word(out, record.ttl);
    const std::size_t size_at = out.size();
    put_word(out, 0);
    write_data(writer, out, record);
    const std::size_t size = out.size() - size_at - 2;
    out[size_at] = static_cast<char>(size >> 8 & 0xff);
    out[size_at + 1] = static_cast<char>(size & 0xff);
}

}  // namespace

Result<Response> parse_response(std::string_view message) {
    if (message.size() > kMaxMessage) return malformed("too long");
    WireReader reader(message, 0);
    Response response;
    response.id = reader.word();
    const std::uint16_t flags = reader.word();
    const std::uint16_t questions = reader.word();
    const std::size_t answers = reader.word();
    const std::size_t authorities = reader.word();
    const std::size_t additionals = reader.word();
    if (!reader.good()) return malformed("shorter than a header");
    if ((flags & kFlagResponse) == 0) return malformed("not a response");
    if (questions != 1) return malformed("must have one question");
    if (answers + authorities + additionals > kMaxRecords) return malformed("too many records");
    response.code = flags & kCodeMask;
    response.truncated = (flags & kFlagTruncated) != 0;
    response.authentic = (flags & kFlagAuthentic) != 0;
    response.name = reader.wire_name();
    response.type = reader.word();
    response.dns_class = reader.word();
    if (!reader.good()) return malformed("unreadable question");
    bool good = true;
    response.answers = read_section(reader, answers, good);
    response.authorities = read_section(reader, authorities, good);
    const auto more = read_section(reader, additionals, good);
    if (!good && !response.truncated) return malformed("unreadable record");
    for (const ResourceRecord& record : more) {
        // The TTL of an OPT record holds the upper eight bits of the code.
        if (record.type != kTypeOpt) continue;
        response.code = static_cast<std::uint16_t>((record.ttl >> 24 << 4) | (flags & kCodeMask));
    }
    return response;
}

Result<EncodedResponse> encode_response(const Response& response) {
    EncodedResponse encoded;
    std::string& out = encoded.bytes;
    put_word(out, 0);
    put_word(out, kFlagResponse | kFlagRecursionDesired | kFlagRecursionAvailable |
                      (response.authentic ? kFlagAuthentic : 0U) | (response.code & kCodeMask));
    put_word(out, 1);
    put_word(out, static_cast<std::uint32_t>(response.answers.size()));
    put_word(out, static_cast<std::uint32_t>(response.authorities.size()));
    put_word(out, 0);
    Writer writer(out);
    writer.name(response.name, true);
    put_word(out, response.type);
    put_word(out, response.dns_class);
    for (const auto* section : {&response.answers, &response.authorities}) {
        for (const ResourceRecord& record : *section) {
            write_record(writer, encoded, record);
            if (out.size() > kMaxMessage) {
                return Error(ErrorCode::too_large, "dns message: longer than TCP carries");
            }
        }
        if (section == &response.answers) encoded.answers_end = out.size();
    }
    return encoded;
}

std::string make_query(std::uint16_t id, std::string_view wire_name, std::uint16_t type,
                       std::uint16_t udp_size, bool dnssec_ok, bool checking_disabled) {
    std::string out;
    put_word(out, id);
    put_word(out, kFlagRecursionDesired | (checking_disabled ? kFlagCheckingDisabled : 0U));
    put_word(out, 1);
    put_long_word(out, 0);
    put_word(out, udp_size == 0 ? 0 : 1);
    out += wire_name;
    put_word(out, type);
    put_word(out, kClassInternet);
    if (udp_size == 0) return out;
    out += '\0';
    put_word(out, kTypeOpt);
    put_word(out, udp_size);
    put_long_word(out, dnssec_ok ? kDnssecOk : 0);
    put_word(out, 0);
    return out;
}

}  // namespace opensandbox::net::dns
