// Makes a sandbox on the server that is found by itself (this machine's, or the one that
// OPEN_SANDBOX_DOMAIN names), runs a command in it and deletes it.
#include <iostream>
#include <opensandbox/blocking.hpp>
#include <opensandbox/sandbox.hpp>

int main() {
    using namespace opensandbox::sdk;
    EventLoop loop;
    Connection server = loop.connect().value();
    Sandbox sandbox = loop.wait(Sandbox::create(server, CreateOptions("host"))).value();
    CommandRequest hello("echo hello from $(hostname)");
    Execution done = loop.wait(sandbox.commands().run(hello)).value();
    std::cout << done.output;
    loop.wait(sandbox.kill()).value();
    return done.exit_code.value_or(1);
}
