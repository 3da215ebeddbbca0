#include "runtime/docker/tar_archive.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <utility>

namespace opensandbox::runtime::docker {
namespace {

constexpr std::size_t kBlock = 512;

/// Fields of the header: offset and size.
struct Field {
    std::size_t offset;
    std::size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kUid{108, 8};
constexpr Field kGid{116, 8};
constexpr Field kSize{124, 12};
constexpr Field kTimeField{136, 12};
constexpr Field kChecksum{148, 8};
constexpr std::size_t kType = 156;
constexpr Field kTarget{157, 100};
constexpr Field kMagic{257, 8};

using Header = std::array<char, kBlock>;

void put(Header& header, Field field, std::string_view text) {
    std::memcpy(header.data() + field.offset, text.data(), std::min(text.size(), field.size));
}

void put_octal(Header& header, Field field, std::uint64_t value) {
    std::array<char, 24> text{};
    std::snprintf(text.data(), text.size(), "%0*llo", static_cast<int>(field.size - 1),
                  static_cast<unsigned long long>(value));
    put(header, field, text.data());
}

}  // namespace

void TarArchive::add_header(std::string_view name, std::uint64_t size, std::uint32_t mode,
                            char type, std::string_view target) {
    Header header{};
    put(header, kName, name);
    put_octal(header, kMode, mode);
    put_octal(header, kUid, 0);
    put_octal(header, kGid, 0);
    put_octal(header, kSize, size);
    put_octal(header, kTimeField, 0);
    put(header, kChecksum, "        ");
    header[kType] = type;
    put(header, kTarget, target);
    put(header, kMagic, std::string_view("ustar\00000", kMagic.size));
    std::uint64_t sum = 0;
    for (char c : header)
        sum += static_cast<unsigned char>(c);
    put_octal(header, Field{kChecksum.offset, kChecksum.size - 1}, sum);
    header[kChecksum.offset + kChecksum.size - 2] = '\0';
    bytes_.append(header.data(), header.size());
}

void TarArchive::add_file(std::string_view name, std::string_view content, std::uint32_t mode) {
    add_header(name, content.size(), mode, '0', "");
    bytes_ += content;
    bytes_.append((kBlock - content.size() % kBlock) % kBlock, '\0');
}

void TarArchive::add_directory(std::string_view name, std::uint32_t mode) {
    add_header(name, 0, mode, '5', "");
}

void TarArchive::add_link(std::string_view name, std::string_view target) {
    constexpr std::uint32_t kLinkMode = 0777;
    add_header(name, 0, kLinkMode, '2', target);
}

std::string TarArchive::finish() {
    bytes_.append(2 * kBlock, '\0');
    return std::exchange(bytes_, {});
}

}  // namespace opensandbox::runtime::docker
