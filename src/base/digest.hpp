#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace opensandbox {

/// SHA-256 over bytes that come in pieces.
class Sha256 {
  public:
    Sha256();
    ~Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;

    void update(std::span<const char> bytes);
    /// 64 lower-case hex digits. Nothing may be added afterwards.
    [[nodiscard]] std::string finish();

  private:
    struct Context;
    std::unique_ptr<Context> context_;
};

/// 64 lower-case hex digits of one piece.
std::string sha256_hex(std::string_view bytes);

/// Exactly 64 lower-case hex digits.
bool is_sha256_hex(std::string_view text);

/// The hex part of "sha256:<64 hex>"; empty when the text is anything else.
std::string_view digest_hex(std::string_view digest);

}  // namespace opensandbox
