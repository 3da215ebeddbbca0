#pragma once

#include "base/error.hpp"
#include "net/latch.hpp"
#include "store/sandbox_store.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::lifecycle {

/// The Idempotency-Key of one request, with the digest of its body.
struct IdempotencyKey {
    std::string key;
    std::string body_digest;
};

/// How long a key is remembered.
inline constexpr std::chrono::hours kKeyLifetime{24};

/// 1 to 255 visible ASCII characters, else `invalid_argument`; digests the body.
Result<IdempotencyKey> make_idempotency_key(std::string_view header, std::string_view body);

/// 409 IDEMPOTENCY_KEY_REUSED: the key came with another body before.
Error reused_key(const std::string& key);

/// Which keys were used for what. Pure but for the latches that concurrent requests wait on.
class KeyTable {
  public:
    explicit KeyTable(asio::any_io_executor executor) : executor_(std::move(executor)) {}

    /// What a request with this key is to do: make a sandbox (all empty), answer for the one named,
    /// wait for a request in flight and ask again, or fail.
    struct Verdict {
        std::string sandbox_id;
        std::shared_ptr<net::Latch> wait;
        std::optional<Error> error;
    };
    Verdict decide(const IdempotencyKey& key, Timestamp now);

    /// Between these, other requests with the key wait. `finish` without a record frees the key.
    void begin(const IdempotencyKey& key);
    void finish(const IdempotencyKey& key, const std::optional<store::KeyRecord>& made);

    void load(std::vector<store::KeyRecord> records);
    /// Forgets what is too old; returns whether there was any.
    bool forget_before(Timestamp limit);
    [[nodiscard]] std::size_t size() const { return made_.size(); }

  private:
    struct InFlight {
        std::string body_digest;
        std::shared_ptr<net::Latch> done;
    };
    asio::any_io_executor executor_;
    std::map<std::string, store::KeyRecord, std::less<>> made_;
    std::map<std::string, InFlight, std::less<>> in_flight_;
};

}  // namespace opensandbox::lifecycle
