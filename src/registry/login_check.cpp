#include "registry/registries.hpp"
#include "registry/session.hpp"

namespace opensandbox::registry {

Awaitable<Status> check_login(RegistryOptions options, std::string registry,
                              model::RegistryLogin login) {
    auto location = locate_registry(registry);
    if (!location) co_return location.error();
    auto wire = std::make_shared<Wire>(co_await asio::this_coro::executor, options);
    Credential credential(login.username, login.password);
    Session session(wire, *location, std::move(credential), "");
    Call call("GET", "/v2/");
    auto answer = co_await session.send(std::move(call));
    if (!answer) co_return answer.error().within("registry " + location->registry);
    co_return Status();
}

}  // namespace opensandbox::registry
