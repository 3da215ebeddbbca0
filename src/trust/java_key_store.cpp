#include "trust/java_trust_store.hpp"

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <cstdint>
#include <optional>

namespace opensandbox::trust {
namespace {

constexpr std::string_view kHead("\xfe\xed\xfe\xed\0\0\0\2", 8);  // magic, version
constexpr std::size_t kCountAt = 8;
constexpr std::size_t kCountSize = 4;
constexpr std::size_t kSealSize = 20;
constexpr std::uint32_t kTrusted = 2;
/// Mixed into every seal.
constexpr std::string_view kSalt = "Mighty Aphrodite";

std::string encoded(const net::CertificateHandle& certificate) {
    unsigned char* bytes = nullptr;
    const int size = i2d_X509(certificate.get(), &bytes);
    if (size <= 0) return {};
    std::string text(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    OPENSSL_free(bytes);
    return text;
}

std::string big_endian(std::uint64_t value, int size) {
    std::string bytes;
    for (int shift = (size - 1) * 8; shift >= 0; shift -= 8)
        bytes += static_cast<char>(value >> shift & 0xff);
    return bytes;
}

std::string with_length(std::string_view text) {
    return big_endian(text.size(), 2) + std::string(text);
}

std::uint32_t count_of(std::string_view store) {
    std::uint32_t count = 0;
    for (const char byte : store.substr(kCountAt, kCountSize))
        count = count << 8 | static_cast<unsigned char>(byte);
    return count;
}

/// SHA-1 is the format's; it keeps nothing secret.
std::optional<std::string> seal(std::string_view content, std::string_view password) {
    std::string sealed;
    for (const char c : password) {
        sealed += '\0';
        sealed += c;
    }
    sealed += kSalt;
    sealed += content;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_Digest(sealed.data(), sealed.size(), digest, &size, EVP_sha1(), nullptr) != 1 ||
        size != kSealSize) {
        return std::nullopt;
    }
    return std::string(reinterpret_cast<const char*>(digest), size);
}

}  // namespace

bool java_store_holds(std::string_view store, const net::CertificateHandle& certificate) {
    const std::string wanted = encoded(certificate);
    return !wanted.empty() && store.find(wanted) != std::string_view::npos;
}

Result<std::string> add_to_java_store(std::string_view store,
                                      const net::CertificateHandle& certificate,
                                      std::string_view alias, std::string_view password,
                                      std::chrono::system_clock::time_point now) {
    const auto unsupported = [](const char* why) {
        return Error(ErrorCode::unsupported, std::string("the keystore ") + why);
    };
    if (store.size() < kCountAt + kCountSize + kSealSize || !store.starts_with(kHead)) {
        return unsupported("is no JKS of version 2");
    }
    const std::string_view content = store.substr(0, store.size() - kSealSize);
    if (seal(content, password) != store.substr(content.size())) {
        return unsupported("has another password, or is damaged");
    }
    const std::string bytes = encoded(certificate);
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
    std::string made(kHead);
    made += big_endian(count_of(store) + 1, kCountSize);
    made += content.substr(kCountAt + kCountSize);
    made += big_endian(kTrusted, 4) + with_length(alias);
    made += big_endian(static_cast<std::uint64_t>(time.count()), 8);
    made += with_length("X.509") + big_endian(bytes.size(), 4) + bytes;
    const auto sealed = seal(made, password);
    if (bytes.empty() || !sealed) return Error(ErrorCode::internal, "the keystore: no digest");
    return made + *sealed;
}

}  // namespace opensandbox::trust
