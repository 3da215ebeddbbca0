#include "base/digest.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>

namespace opensandbox {
namespace {

constexpr std::string_view kDigestPrefix = "sha256:";

/// Hashing fails only when memory is gone or the library is broken: nothing sensible can follow.
void must_hash(int ok) {
    if (ok != 1) std::abort();
}

}  // namespace

struct Sha256::Context {
    struct Free {
        void operator()(EVP_MD_CTX* md) const { EVP_MD_CTX_free(md); }
    };
    std::unique_ptr<EVP_MD_CTX, Free> md{EVP_MD_CTX_new()};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
    must_hash(EVP_DigestInit_ex(context_->md.get(), EVP_sha256(), nullptr));
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const char> bytes) {
    must_hash(EVP_DigestUpdate(context_->md.get(), bytes.data(), bytes.size()));
}

std::string Sha256::finish() {
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    must_hash(EVP_DigestFinal_ex(context_->md.get(), raw, &length));
    constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    hex.reserve(std::size_t{2} * length);
    for (unsigned i = 0; i < length; ++i) {
        hex += kDigits[raw[i] >> 4];
        hex += kDigits[raw[i] & 15];
    }
    return hex;
}

std::string sha256_hex(std::string_view bytes) {
    Sha256 hash;
    hash.update(bytes);
    return hash.finish();
}

bool is_sha256_hex(std::string_view text) {
    return text.size() == 64 && std::ranges::all_of(text, [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

std::string_view digest_hex(std::string_view digest) {
    if (!digest.starts_with(kDigestPrefix)) return {};
    digest.remove_prefix(kDigestPrefix.size());
    return is_sha256_hex(digest) ? digest : std::string_view{};
}

}  // namespace opensandbox
