#include "hello_bytes.hpp"
#include "interception_world.hpp"

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;

namespace {

const std::string kAccessDenied("\x15\x03\x03\x00\x02\x02\x31", 7);

/// What comes back for a hello whose true name may be hidden behind one that is allowed.
std::string answer_to_hidden(World& world) {
    PlainClient client(world.port);
    client.say(record(hello_message(server_name("api.example.com") + extension(0xfe0d, "sealed"))));
    client.end_sending();
    return client.hear_all();
}

}  // namespace

TEST_CASE("a hidden name is not passed through unless that is wished", "[egress]") {
    World world;
    world.gate.names["api.example.com"] = Action::pass_through;
    std::atomic<int> reached{0};
    std::uint16_t port = 0;
    UniqueFd listener = listen_loopback(port);
    std::thread server([&] {
        UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        char byte = 0;
        if (fd && ::recv(fd.get(), &byte, 1, 0) == 1) ++reached;
    });
    auto policy = GENERATE(EncryptedHello::terminate, EncryptedHello::deny, EncryptedHello::pass);
    world.settings.encrypted_hello = policy;
    world.start(port);
    std::string answer = answer_to_hidden(world);
    world.stop();
    ::shutdown(listener.get(), SHUT_RDWR);
    server.join();
    bool passed = policy == EncryptedHello::pass;
    CHECK(reached == (passed ? 1 : 0));
    CHECK((answer == kAccessDenied) == !passed);
}

TEST_CASE("what looks like a hidden name is intercepted under the one that shows", "[egress]") {
    World world;
    bool deny = GENERATE(false, true);
    if (deny) world.settings.encrypted_hello = EncryptedHello::deny;
    TlsServer origin(world.origin(), answer_http([](const std::string&) { return ok("x"); }));
    world.start(origin.port);
    CHECK((answer_to_hidden(world) == kAccessDenied) == deny);
    CHECK(world.audit.has("api.example.com intercepted") == !deny);
}
