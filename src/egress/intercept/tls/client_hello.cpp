#include "egress/intercept/tls/client_hello.hpp"

#include <algorithm>
#include <set>

namespace opensandbox::egress {
namespace {

constexpr std::size_t kRecordHeader = 5;
constexpr std::size_t kMaxRecord = 16 * 1024;
constexpr std::size_t kMaxProtocols = 64;
constexpr unsigned kHandshakeRecord = 22;
constexpr unsigned kClientHello = 1;
constexpr unsigned kServerName = 0;
constexpr unsigned kProtocols = 16;
constexpr unsigned kEncryptedHello = 0xfe0d;
/// What came before encrypted hellos; the same intent.
constexpr unsigned kEncryptedName = 0xffce;

unsigned byte_at(std::string_view bytes, std::size_t at) {
    return static_cast<unsigned char>(bytes[at]);
}

/// Takes numbers and counted pieces off the front; once something is missing, all that follows is
/// empty and ok() is false.
class Reader {
  public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}

    std::size_t number(std::size_t width) {
        std::string_view bytes = take(width);
        std::size_t value = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i)
            value = value << 8 | byte_at(bytes, i);
        return value;
    }
    std::string_view counted(std::size_t width) { return take(number(width)); }
    std::string_view take(std::size_t count) {
        if (count > rest_.size()) {
            ok_ = false;
            rest_ = {};
            return {};
        }
        std::string_view taken = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return taken;
    }
    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] bool empty() const { return rest_.empty(); }

  private:
    std::string_view rest_;
    bool ok_ = true;
};

std::string_view parse_server_name(std::string_view body, ClientHello& out) {
    Reader reader(body);
    Reader list(reader.counted(2));
    if (!reader.ok() || !reader.empty() || list.empty()) return "malformed server name list";
    while (!list.empty()) {
        std::size_t type = list.number(1);
        std::string_view name = list.counted(2);
        if (!list.ok()) return "malformed server name list";
        if (type != 0) continue;
        if (out.server_name) return "more than one server name";
        bool printable =
            std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < '\x7f'; });
        if (name.empty() || name.size() > 255 || !printable) return "malformed server name";
        out.server_name.emplace(name);
    }
    return {};
}

std::string_view parse_protocols(std::string_view body, ClientHello& out) {
    Reader reader(body);
    Reader list(reader.counted(2));
    if (!reader.ok() || !reader.empty() || list.empty()) return "malformed protocol list";
    while (!list.empty()) {
        std::string_view name = list.counted(1);
        if (!list.ok() || name.empty()) return "malformed protocol list";
        if (out.protocols.size() == kMaxProtocols) return "too many protocols";
        out.protocols.emplace_back(name);
    }
    return {};
}

std::string_view parse_extensions(std::string_view bytes, ClientHello& out) {
    Reader reader(bytes);
    std::set<std::size_t> seen;
    while (!reader.empty()) {
        std::size_t type = reader.number(2);
        std::string_view body = reader.counted(2);
        if (!reader.ok()) return "malformed extension";
        if (!seen.insert(type).second) return "an extension twice";
        std::string_view reason;
        if (type == kServerName) reason = parse_server_name(body, out);
        if (type == kProtocols) reason = parse_protocols(body, out);
        if (type == kEncryptedHello || type == kEncryptedName) out.encrypted = true;
        if (!reason.empty()) return reason;
    }
    return {};
}

std::string_view parse_hello(std::string_view body, ClientHello& out) {
    Reader reader(body);
    reader.take(2 + 32);  // version, random
    std::size_t session = reader.counted(1).size();
    std::size_t ciphers = reader.counted(2).size();
    std::size_t compressions = reader.counted(1).size();
    bool sound = reader.ok() && session <= 32 && ciphers >= 2 && ciphers % 2 == 0;
    if (!sound || compressions == 0) return "malformed hello";
    if (reader.empty()) return {};
    std::string_view extensions = reader.counted(2);
    if (!reader.ok() || !reader.empty()) return "malformed hello";
    return parse_extensions(extensions, out);
}

}  // namespace

ClientHelloParser::State ClientHelloParser::fail(std::string_view reason) {
    error_ = reason;
    return State::malformed;
}

/// Joins the content of the whole records that came; `complete` when nothing is wrong.
ClientHelloParser::State ClientHelloParser::take_records(std::string_view bytes) {
    constexpr std::string_view kStart("\x16\x03");
    if (bytes.substr(0, 2) != kStart.substr(0, std::min<std::size_t>(bytes.size(), 2))) {
        return State::not_tls;
    }
    while (bytes.size() - used_ >= kRecordHeader) {
        std::string_view header = bytes.substr(used_, kRecordHeader);
        if (byte_at(header, 0) != kHandshakeRecord || byte_at(header, 1) != 3) {
            return fail("a record of another kind inside the hello");
        }
        std::size_t length = byte_at(header, 3) << 8 | byte_at(header, 4);
        if (length == 0 || length > kMaxRecord) return fail("malformed record length");
        if (bytes.size() - used_ - kRecordHeader < length) break;
        handshake_ += bytes.substr(used_ + kRecordHeader, length);
        used_ += kRecordHeader + length;
        if (handshake_.size() < 4) continue;
        std::size_t needed = 4 + Reader(std::string_view(handshake_).substr(1)).number(3);
        if (handshake_.size() >= needed) break;
    }
    return State::complete;
}

ClientHelloParser::State ClientHelloParser::parse(std::string_view bytes) {
    State taken = take_records(bytes);
    if (taken != State::complete) return taken;
    if (!handshake_.empty() && byte_at(handshake_, 0) != kClientHello) {
        return fail("the first message is no hello");
    }
    std::size_t size = 0;
    if (handshake_.size() >= 4) {
        size = Reader(std::string_view(handshake_).substr(1)).number(3);
        if (size > kMaxHello) return fail("the hello is too large");
    }
    if (handshake_.size() < 4 || handshake_.size() < 4 + size) {
        return bytes.size() >= kMaxBytes ? fail("the hello is too large") : State::incomplete;
    }
    if (used_ > kMaxBytes) return fail("the hello is too large");
    std::string_view body = std::string_view(handshake_).substr(4);
    if (body.size() != size) return fail("bytes behind the hello in its record");
    hello_ = ClientHello();
    std::string_view reason = parse_hello(body, hello_);
    return reason.empty() ? State::complete : fail(reason);
}

}  // namespace opensandbox::egress
