#include "sdk/redis_pool_store.hpp"

#include "base/base64.hpp"
#include "base/scope_exit.hpp"
#include "opensandbox/pool_store.hpp"
#include "redis/client.hpp"
#include "sdk/pool_error.hpp"
#include "sdk/transport.hpp"

#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <charconv>

namespace opensandbox::sdk {

namespace {

using std::chrono::milliseconds;
namespace resp = opensandbox::redis::resp;

template <class Number>
std::optional<Number> read_number(std::string_view text) {
    Number number{};
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::string text_of(milliseconds time) {
    return std::to_string(std::max<std::int64_t>(time.count(), 0));
}

std::vector<std::string> texts(resp::Value& list) {
    std::vector<std::string> all;
    for (resp::Value& item : list.items)
        all.push_back(std::move(item.text));
    return all;
}

}  // namespace

std::string redis_pool_key(std::string_view prefix, std::string_view pool,
                           std::string_view suffix) {
    return std::string(prefix) + ":{" + to_base64url(pool) + "}:" + std::string(suffix);
}

namespace {

/// One connection, used by one caller after the other.
class RedisPoolStore final : public PoolStore {
  public:
    RedisPoolStore(asio::any_io_executor executor, redis::Address address,
                   RedisStoreOptions options)
        : executor_(executor),
          address_(std::move(address)),
          options_(std::move(options)),
          turn_(executor, 1) {
        turn_.try_send(boost::system::error_code());
    }

    Awaitable<Result<TakenIdle>> take_idle(std::string pool, milliseconds min_remaining) override {
        const std::string remaining = text_of(min_remaining);
        auto reply = co_await run(redis_script::kTake, pool, {"idle:list", "idle:expires"},
                                  {remaining}, resp::Kind::array);
        if (!reply) co_return reply.error();
        TakenIdle taken;
        if (reply->items.size() != 2) co_return malformed();
        if (!reply->items[0].text.empty()) taken.sandbox_id = std::move(reply->items[0].text);
        taken.discarded = texts(reply->items[1]);
        co_return taken;
    }

    Awaitable<Status> put_idle(std::string pool, std::string sandbox_id) override {
        auto ttl = co_await get(pool, "idleTtlMillis");
        if (!ttl) co_return ttl.error();
        std::int64_t live = kDefaultTtl.count();
        if (*ttl) live = read_number<std::int64_t>(**ttl).value_or(live);
        const std::string time = std::to_string(std::max<std::int64_t>(live, 1));
        co_return co_await write(redis_script::kPut, pool,
                                 {"idle:list", "idle:expires", "destroy:state"},
                                 {sandbox_id, time});
    }

    Awaitable<Status> remove_idle(std::string pool, std::string sandbox_id) override {
        co_return co_await write(redis_script::kRemove, pool, {"idle:list", "idle:expires"},
                                 {sandbox_id});
    }

    Awaitable<Result<std::vector<std::string>>> reap_expired(std::string pool,
                                                             milliseconds min_remaining) override {
        const std::string remaining = text_of(min_remaining);
        auto reply = co_await run(redis_script::kReap, pool, {"idle:list", "idle:expires"},
                                  {remaining}, resp::Kind::array);
        if (!reply) co_return reply.error();
        co_return texts(*reply);
    }

    Awaitable<Result<bool>> acquire_primary_lock(std::string pool, std::string owner,
                                                 milliseconds time_to_live) override {
        return lock(redis_script::kLock, std::move(pool), std::move(owner), time_to_live);
    }
    Awaitable<Result<bool>> renew_primary_lock(std::string pool, std::string owner,
                                               milliseconds time_to_live) override {
        return lock(redis_script::kRenew, std::move(pool), std::move(owner), time_to_live);
    }
    Awaitable<Status> release_primary_lock(std::string pool, std::string owner) override {
        co_return co_await write(redis_script::kRelease, pool, {"lock"}, {owner});
    }

    Awaitable<Result<std::size_t>> count_idle(std::string pool) override {
        const std::string hash = key(pool, "idle:expires");
        auto reply = co_await call({"HLEN", hash}, resp::Kind::integer);
        if (!reply) co_return reply.error();
        co_return static_cast<std::size_t>(std::max<std::int64_t>(reply->number, 0));
    }

    Awaitable<Result<std::vector<IdleEntry>>> idle_entries(std::string pool) override {
        auto reply = co_await run(redis_script::kEntries, pool, {"idle:list", "idle:expires"}, {},
                                  resp::Kind::array);
        if (!reply) co_return reply.error();
        std::vector<IdleEntry> entries;
        for (std::size_t i = 0; i + 1 < reply->items.size(); i += 2) {
            auto expiry = read_number<std::int64_t>(reply->items[i + 1].text);
            if (!expiry) co_return malformed();
            entries.emplace_back(std::move(reply->items[i].text),
                                 std::chrono::sys_time<milliseconds>(milliseconds(*expiry)));
        }
        co_return entries;
    }

    Awaitable<Result<std::optional<std::size_t>>> max_idle(std::string pool) override {
        auto text = co_await get(pool, "maxIdle");
        if (!text) co_return text.error();
        std::optional<std::size_t> number;
        if (*text) number = read_number<std::size_t>(**text);
        co_return number;
    }
    Awaitable<Status> set_max_idle(std::string pool, std::size_t max_idle) override {
        const std::string value = std::to_string(max_idle);
        co_return co_await write(redis_script::kSet, pool, {"maxIdle", "destroy:state"}, {value});
    }
    Awaitable<Status> set_idle_ttl(std::string pool, milliseconds ttl) override {
        const std::string value = text_of(std::max(ttl, milliseconds(1)));
        co_return co_await write(redis_script::kSet, pool, {"idleTtlMillis", "destroy:state"},
                                 {value});
    }

    Awaitable<Result<PoolDestroyState>> destroy_state(std::string pool) override {
        auto text = co_await get(pool, "destroy:state");
        if (!text) co_return text.error();
        if (*text == "DESTROYING") co_return PoolDestroyState::destroying;
        if (*text == "DESTROYED") co_return PoolDestroyState::destroyed;
        co_return PoolDestroyState::active;
    }
    Awaitable<Status> begin_destroy(std::string pool, std::string owner) override {
        co_return co_await write(redis_script::kBeginDestroy, pool,
                                 {"destroy:state", "destroy:owner"}, {owner});
    }
    Awaitable<Status> clear(std::string pool) override {
        const std::string list = key(pool, "idle:list");
        const std::string hash = key(pool, "idle:expires");
        const std::string lock = key(pool, "lock");
        const std::string most = key(pool, "maxIdle");
        const std::string ttl = key(pool, "idleTtlMillis");
        auto reply = co_await call({"DEL", list, hash, lock, most, ttl}, resp::Kind::integer);
        if (!reply) co_return reply.error();
        co_return Status();
    }
    Awaitable<Status> mark_destroyed(std::string pool, std::string owner,
                                     std::optional<milliseconds> keep) override {
        const std::string time =
            keep ? text_of(std::max(*keep, milliseconds(1))) : std::string("0");
        co_return co_await write(redis_script::kMarkDestroyed, pool,
                                 {"destroy:state", "destroy:owner"}, {owner, time});
    }

  private:
    using Words = std::vector<std::string>;
    static constexpr milliseconds kDefaultTtl = std::chrono::hours(24);

    [[nodiscard]] std::string key(std::string_view pool, std::string_view suffix) const {
        return redis_pool_key(options_.key_prefix, pool, suffix);
    }

    static Error unavailable(const std::string& why) {
        return pool_error(ErrorCode::unavailable, kPoolStoreUnavailable, why);
    }
    static Error malformed() { return unavailable("Redis gave a reply of another form"); }

    /// Runs a script on keys of a pool.
    Awaitable<Result<resp::Value>> run(std::string script, std::string pool, Words suffixes,
                                       Words arguments, resp::Kind expected) {
        Words words{"EVAL", std::move(script), std::to_string(suffixes.size())};
        for (const std::string& suffix : suffixes)
            words.push_back(key(pool, suffix));
        words.insert(words.end(), arguments.begin(), arguments.end());
        co_return co_await call(std::move(words), expected);
    }

    /// A script that says -1 when the pool's state forbids it.
    Awaitable<Status> write(std::string script, std::string pool, Words suffixes, Words arguments) {
        auto reply = co_await run(std::move(script), pool, std::move(suffixes),
                                  std::move(arguments), resp::Kind::integer);
        if (!reply) co_return reply.error();
        if (reply->number >= 0) co_return Status();
        auto state = co_await destroy_state(pool);
        if (!state) co_return state.error();
        co_return destroyed_error(pool, *state);
    }

    Awaitable<Result<bool>> lock(std::string script, std::string pool, std::string owner,
                                 milliseconds time_to_live) {
        const std::string time = text_of(std::max(time_to_live, milliseconds(1)));
        auto reply = co_await run(std::move(script), std::move(pool), {"lock", "destroy:state"},
                                  {owner, time}, resp::Kind::integer);
        if (!reply) co_return reply.error();
        co_return reply->number == 1;
    }

    Awaitable<Result<std::optional<std::string>>> get(std::string pool, std::string suffix) {
        const std::string name = key(pool, suffix);
        auto reply = co_await call({"GET", name}, resp::Kind::bulk);
        if (!reply) co_return reply.error();
        std::optional<std::string> text;
        if (reply->kind == resp::Kind::bulk) text = std::move(reply->text);
        co_return text;
    }

    /// One command, when it is this caller's turn. Null stands for whatever was expected.
    Awaitable<Result<resp::Value>> call(Words words, resp::Kind expected) {
        std::string command =
            resp::command(std::vector<std::string_view>(words.begin(), words.end()));
        co_await turn_.async_receive(asio::use_awaitable);
        ScopeExit next([this] { turn_.try_send(boost::system::error_code()); });
        auto reply = co_await exchange(std::move(command));
        if (!reply) co_return unavailable(reply.error().message());
        if (reply->kind != expected && reply->kind != resp::Kind::null) co_return malformed();
        co_return std::move(*reply);
    }

    Awaitable<opensandbox::Result<resp::Value>> exchange(std::string command) {
        if (!client_ || !client_->usable()) {
            client_.reset();
            auto client = co_await redis::Client::connect(executor_, address_);
            if (!client) co_return client.error();
            client_ = std::move(*client);
        }
        co_return co_await client_->call(std::move(command), options_.timeout);
    }

    asio::any_io_executor executor_;
    redis::Address address_;
    RedisStoreOptions options_;
    /// Holds one message while nobody uses the connection.
    asio::experimental::channel<void(boost::system::error_code)> turn_;
    std::unique_ptr<redis::Client> client_;
};

}  // namespace

Result<std::shared_ptr<PoolStore>> redis_pool_store(boost::asio::any_io_executor executor,
                                                    RedisStoreOptions options) {
    auto address = redis::parse_url(options.url);
    if (!address) return to_public(address.error());
    if (options.key_prefix.empty()) {
        return Error(ErrorCode::invalid_argument, "key_prefix must not be empty");
    }
    if (options.timeout.count() < 1) {
        return Error(ErrorCode::invalid_argument, "timeout must be at least 1 ms");
    }
    return std::shared_ptr<PoolStore>(std::make_shared<RedisPoolStore>(
        std::move(executor), std::move(*address), std::move(options)));
}

}  // namespace opensandbox::sdk
