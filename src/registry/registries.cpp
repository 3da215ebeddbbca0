#include "registry/registries.hpp"

#include "base/digest.hpp"
#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "image/budget.hpp"
#include "net/task.hpp"
#include "registry/keychain.hpp"
#include "registry/transfer.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>

#include <map>

namespace opensandbox::registry {
namespace {

using Pulled = Result<image::ImageInfo>;

/// Unpacking and packing take a processor each; writing what arrives takes the third.
constexpr std::size_t kThreads = 3;

/// A transfer under way and how many wait for it: without any it ends.
class Voyage {
  public:
    Voyage(asio::any_io_executor executor, const std::stop_token& server)
        : ended_(executor, asio::steady_timer::time_point::max()),
          server_(server, [this] { stop_.request_stop(); }) {}

    [[nodiscard]] std::stop_token stop() const { return stop_.get_token(); }
    void wake() { ended_.cancel(); }
    Awaitable<void> wait() { co_await ended_.async_wait(asio::as_tuple(asio::use_awaitable)); }

    /// Somebody who waits for as long as this exists; woken when told to stop.
    class Passenger {
      public:
        Passenger(std::shared_ptr<Voyage> voyage, const std::stop_token& stop)
            : voyage_(std::move(voyage)), stop_(stop, [v = voyage_.get()] { v->wake(); }) {
            ++voyage_->passengers_;
        }
        Passenger(const Passenger&) = delete;
        Passenger& operator=(const Passenger&) = delete;
        ~Passenger() {
            if (--voyage_->passengers_ == 0) voyage_->stop_.request_stop();
        }

      private:
        std::shared_ptr<Voyage> voyage_;
        std::stop_callback<std::function<void()>> stop_;
    };

  private:
    asio::steady_timer ended_;  ///< cancelled to wake who waits
    std::size_t passengers_ = 0;
    std::stop_source stop_;
    std::stop_callback<std::function<void()>> server_;
};

/// A pull.
struct Flight : Voyage {
    using Voyage::Voyage;

    void tell(const LayerProgress& progress) {
        layers[progress.layer] = progress;
        for (const auto& weak : watchers) {
            if (auto watcher = weak.lock()) (*watcher)(progress);
        }
    }

    std::optional<Pulled> result;
    std::vector<std::weak_ptr<ProgressListener>> watchers;
    std::map<std::string, LayerProgress> layers;  ///< as told last, for those who come later
};

/// A push.
struct Delivery : Voyage {
    using Voyage::Voyage;
    std::optional<Result<PushedImage>> result;
};

std::string shown(const Location& location) {
    bool by_digest = location.reference.starts_with("sha256:");
    return image::in_quotes(location.repository + (by_digest ? "@" : ":") + location.reference);
}

}  // namespace

struct Registries::State {
    State(asio::any_io_executor e, image::Store& s, RegistryOptions o)
        : executor(e),
          store(s),
          options(std::move(o)),
          wire(std::make_shared<Wire>(e, options)),
          keychain(CredentialFile(options.credentials), options.docker_config) {}

    asio::thread_pool& threads() {
        if (!pool) pool.emplace(kThreads);
        return *pool;
    }
    Workplace place() { return {store, threads()}; }
    Awaitable<Credential> credential(std::string registry,
                                     std::optional<model::RegistryLogin> login);
    static Awaitable<Pulled> pull(std::shared_ptr<State> state, std::string reference,
                                  std::optional<model::RegistryLogin> login,
                                  ProgressListener listener, std::stop_token stop);
    static Awaitable<Result<PushedImage>> push(std::shared_ptr<State> state, std::string reference,
                                               std::string destination,
                                               std::optional<model::RegistryLogin> login,
                                               ProgressListener listener, std::stop_token stop);
    static Awaitable<void> deliver(std::shared_ptr<State> state, std::shared_ptr<Delivery> delivery,
                                   std::string reference, std::string destination,
                                   std::optional<model::RegistryLogin> login,
                                   ProgressListener listener);
    static Awaitable<void> fly(std::shared_ptr<State> state, std::shared_ptr<Flight> flight,
                               std::string key, std::string reference,
                               std::optional<model::RegistryLogin> login);

    asio::any_io_executor executor;
    image::Store& store;
    RegistryOptions options;
    std::shared_ptr<Wire> wire;
    Keychain keychain;
    std::map<std::string, std::shared_ptr<Flight>> flights;
    std::stop_source stopping;
    std::size_t under_way = 0;  ///< transfers, also those that nobody waits for any more
    std::optional<asio::thread_pool> pool;  ///< made at first use
};

/// That of the request, else the stored one.
Awaitable<Credential> Registries::State::credential(std::string registry,
                                                    std::optional<model::RegistryLogin> login) {
    if (login) {
        Credential given(login->username, login->password);
        co_return given;
    }
    std::function<Credential()> find = [&keychain = keychain, registry] {
        return keychain.find(registry);
    };
    co_return co_await net::run_blocking<Credential>(threads(), std::move(find));
}

Registries::Registries(asio::any_io_executor executor, image::Store& store, RegistryOptions options)
    : state_(std::make_shared<State>(std::move(executor), store, std::move(options))) {}

Registries::~Registries() {
    state_->stopping.request_stop();
    if (state_->pool) state_->pool->join();
}

const RegistryOptions& Registries::options() const {
    return state_->options;
}

/// From a name to an image in the store.
Awaitable<Pulled> Registries::State::pull(std::shared_ptr<State> state, std::string reference,
                                          std::optional<model::RegistryLogin> login,
                                          ProgressListener listener, std::stop_token stop) {
    auto parsed = image::parse_reference(reference);
    if (!parsed) co_return Pulled(parsed.error());
    auto location = locate(*parsed);
    if (!location) co_return Pulled(location.error());
    Credential credential = co_await state->credential(location->registry, std::move(login));
    Session session(state->wire, *location, std::move(credential),
                    "repository:" + location->repository + ":pull", std::move(stop));
    auto pulled = co_await pull_image(session, state->place(), parsed->text(), std::move(listener));
    if (!pulled) {
        co_return Pulled(pulled.error().within("pull of " + shown(*location) + " from registry " +
                                               location->registry));
    }
    log::info("image pulled", {{"image", pulled->reference},
                               {"registry", location->registry},
                               {"digest", pulled->digest}});
    co_return pulled;
}

Awaitable<Pulled> Registries::pull(std::string reference, std::optional<model::RegistryLogin> login,
                                   Watcher watcher, std::stop_token stop) {
    auto name = image::normalize_reference(reference);
    if (!name) co_return Pulled(name.error());
    // Another login is another pull: nobody gets in on somebody else's.
    std::string key = *name;
    if (login) key += " " + sha256_hex(login->username + '\0' + login->password);
    auto state = state_;
    std::shared_ptr<Flight>& slot = state->flights[key];
    // One that everybody has left is not taken any more.
    bool first = !slot || slot->stop().stop_requested();
    if (first) slot = std::make_shared<Flight>(state->executor, state->stopping.get_token());
    std::shared_ptr<Flight> flight = slot;
    Voyage::Passenger passenger(flight, stop);
    if (watcher) {
        flight->watchers.push_back(watcher);
        for (const auto& [layer, progress] : flight->layers)
            (*watcher)(progress);
    }
    if (first) {
        net::spawn(state->executor, State::fly(state, flight, key, *name, std::move(login)),
                   "image pull");
    }
    while (!flight->result && !stop.stop_requested())
        co_await flight->wait();
    co_return flight->result ? *flight->result : Pulled(unwanted_transfer());
}

/// From the store to a registry.
Awaitable<Result<PushedImage>> Registries::State::push(
    std::shared_ptr<State> state, std::string reference, std::string destination,
    std::optional<model::RegistryLogin> login, ProgressListener listener, std::stop_token stop) {
    using Details = Result<std::shared_ptr<const image::ImageDetails>>;
    auto target = image::parse_reference(destination.empty() ? reference : destination);
    if (!target) co_return target.error();
    auto location = locate(*target);
    if (!location) co_return location.error();
    if (target->tag.empty()) {
        co_return Error(ErrorCode::invalid_argument,
                        "a push must name a tag, not a digest: the registry makes that");
    }
    std::function<Details()> look = [&store = state->store, reference]() -> Details {
        auto details = store.inspect(reference);
        if (!details) return details.error();
        return std::make_shared<const image::ImageDetails>(std::move(*details));
    };
    auto details = co_await net::run_blocking<Details>(state->threads(), std::move(look));
    if (!details) co_return details.error();
    Credential credential = co_await state->credential(location->registry, std::move(login));
    std::string scope = "repository:" + location->repository + ":pull,push";
    if ((*details)->documents) {
        const std::string& source = (*details)->documents->source;
        std::string prefix = location->registry + "/";
        if (source.starts_with(prefix) && source != location->source()) {
            scope += " repository:" + source.substr(prefix.size()) + ":pull";
        }
    }
    Session session(state->wire, *location, std::move(credential), std::move(scope),
                    std::move(stop));
    auto pushed = co_await push_image(session, state->place(), *details, std::move(listener));
    if (!pushed) {
        co_return pushed.error().within("push of " + shown(*location) + " to registry " +
                                        location->registry);
    }
    log::info("image pushed",
              {{"image", reference}, {"registry", location->registry}, {"digest", pushed->digest}});
    co_return pushed;
}

/// A listener that calls the watcher for as long as somebody holds it.
ProgressListener listener_of(const Watcher& watcher) {
    std::weak_ptr<ProgressListener> weak = watcher;
    return [weak](const LayerProgress& progress) {
        if (auto listener = weak.lock()) (*listener)(progress);
    };
}

Awaitable<void> Registries::State::deliver(std::shared_ptr<State> state,
                                           std::shared_ptr<Delivery> delivery,
                                           std::string reference, std::string destination,
                                           std::optional<model::RegistryLogin> login,
                                           ProgressListener listener) {
    ++state->under_way;
    ScopeExit land([&] {
        if (!delivery->result) {
            delivery->result.emplace(Error(ErrorCode::internal, "the push was broken off"));
        }
        --state->under_way;
        delivery->wake();
    });
    auto pushed = co_await push(state, std::move(reference), std::move(destination),
                                std::move(login), std::move(listener), delivery->stop());
    delivery->result.emplace(std::move(pushed));
}

Awaitable<Result<PushedImage>> Registries::push(std::string reference, std::string destination,
                                                std::optional<model::RegistryLogin> login,
                                                Watcher watcher, std::stop_token stop) {
    auto state = state_;
    auto delivery = std::make_shared<Delivery>(state->executor, state->stopping.get_token());
    Voyage::Passenger passenger(delivery, stop);
    net::spawn(state->executor,
               State::deliver(state, delivery, std::move(reference), std::move(destination),
                              std::move(login), listener_of(watcher)),
               "image push");
    while (!delivery->result && !stop.stop_requested())
        co_await delivery->wait();
    co_return delivery->result ? *delivery->result : Result<PushedImage>(unwanted_transfer());
}

Awaitable<void> Registries::State::fly(std::shared_ptr<State> state, std::shared_ptr<Flight> flight,
                                       std::string key, std::string reference,
                                       std::optional<model::RegistryLogin> login) {
    ++state->under_way;
    ScopeExit land([&] {
        if (!flight->result) {
            flight->result.emplace(Error(ErrorCode::internal, "the pull was broken off"));
        }
        auto own = state->flights.find(key);
        if (own != state->flights.end() && own->second == flight) state->flights.erase(own);
        --state->under_way;
        flight->wake();
    });
    ProgressListener listener = [flight](const LayerProgress& progress) { flight->tell(progress); };
    auto pulled = co_await pull(state, std::move(reference), std::move(login), std::move(listener),
                                flight->stop());
    flight->result.emplace(std::move(pulled));
}

Awaitable<void> Registries::stop(std::chrono::milliseconds patience) {
    constexpr std::chrono::milliseconds kStep{5};
    auto state = state_;
    state->stopping.request_stop();
    const auto until = std::chrono::steady_clock::now() + patience;
    while (state->under_way > 0 && std::chrono::steady_clock::now() < until)
        co_await net::sleep_for(kStep);
}

}  // namespace opensandbox::registry
