#pragma once

#include "base/error.hpp"
#include "net/ipv4_range.hpp"
#include "net/ipv6_range.hpp"

#include <boost/asio/ip/address.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Sets and maps of the packet filter with keys of several fields.
namespace opensandbox::net::nft {

/// What one field of a key holds.
enum class KeyField : std::uint8_t { mark, link_name, ipv4, ipv6, protocol, port };

/// What the keys of a map stand for.
enum class SetValue : std::uint8_t {
    none,
    verdict,  ///< a chain, jumped to
};

/// The shape of a set or map.
struct SetLayout {
    SetLayout() = default;
    SetLayout(std::vector<KeyField> fields, SetValue kind = SetValue::none)
        : key(std::move(fields)), value(kind) {}

    std::vector<KeyField> key;  ///< at most 5, and at most 64 bytes, each a multiple of 4
    SetValue value = SetValue::none;
    bool timeouts = false;                  ///< elements may have a lifetime
    bool intervals = false;                 ///< elements are ranges of keys; keys of one field only
    bool dynamic = false;                   ///< rules add elements
    std::uint32_t size = 0;                 ///< most elements; 0: no limit
    std::chrono::milliseconds lifetime{0};  ///< of elements that name none; 0: for ever

    /// Bytes of a key as the kernel has it.
    [[nodiscard]] std::size_t key_size() const;
    /// As the tools write it, for listing.
    [[nodiscard]] std::uint32_t key_type() const;
};

/// The bytes of a key, field by field in the order of the layout.
class SetKey {
  public:
    /// A link's name: 1 to 15 bytes, or the key is not valid.
    SetKey& link(std::string_view name);
    SetKey& address(const boost::asio::ip::address& address);
    SetKey& ipv4(const Ipv4Address& address);
    SetKey& ipv6(const Ipv6Address& address);
    SetKey& protocol(std::uint8_t number);
    SetKey& port(std::uint16_t number);

    [[nodiscard]] bool valid() const { return valid_; }
    [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }

  private:
    SetKey& add(std::span<const std::uint8_t> field, std::size_t room);

    std::vector<std::uint8_t> bytes_;
    bool valid_ = true;
};

/// One element of a set.
struct Element {
    SetKey key;
    std::optional<SetKey> last = std::nullopt;  ///< of a range, included; for interval sets
    std::string chain;                          ///< of a map of verdicts
    /// 0: the set's own. Whole milliseconds; lasts so long from now on.
    std::chrono::milliseconds lifetime{0};
    std::string comment;  ///< up to 128 bytes; shown by the tools
};

/// An element as the kernel lists it.
struct ListedElement {
    std::vector<std::uint8_t> key;
    std::string chain;
    std::chrono::milliseconds remaining{0};  ///< 0: for ever
    std::string comment;
};

/// Takes a key apart; each returns nothing once the bytes do not suffice.
class KeyReader {
  public:
    explicit KeyReader(std::span<const std::uint8_t> key) : rest_(key) {}

    std::optional<std::string> link();
    std::optional<Ipv4Address> ipv4();
    std::optional<Ipv6Address> ipv6();
    std::optional<std::uint8_t> protocol();
    std::optional<std::uint16_t> port();

  private:
    std::optional<std::span<const std::uint8_t>> take(std::size_t size);

    std::span<const std::uint8_t> rest_;
};

/// A set named or, without a name of its own, made in the same transaction.
struct SetReference {
    SetReference(std::string_view set) : name(set) {}
    SetReference(const char* set) : name(set) {}
    SetReference(const std::string& set) : name(set) {}
    SetReference(std::string set, std::uint32_t number) : name(std::move(set)), id(number) {}

    std::string name;
    std::uint32_t id = 0;
};

/// A field of a packet, or a constant, as a part of a key that is looked up.
struct KeyPart {
    enum class Source : std::uint8_t {
        incoming_link,
        outgoing_link,
        ipv4_source,  ///< of IPv4 packets only, as the next one
        ipv4_destination,
        ipv6_source,  ///< of IPv6 packets only, as the next one
        ipv6_destination,
        protocol,
        destination_port,  ///< of TCP and UDP only
        constant_protocol,
        constant_port,
    };
    KeyPart(Source from, std::uint16_t value = 0) : source(from), constant(value) {}

    Source source;
    std::uint16_t constant;
};

}  // namespace opensandbox::net::nft
