// Copies of a sandbox with all its files: each goes its own way from there.
#include <iostream>
#include <opensandbox/blocking.hpp>
#include <opensandbox/sandbox.hpp>

int main() {
    using namespace opensandbox::sdk;
    EventLoop loop;
    Connection server = loop.connect().value();
    Sandbox source = loop.wait(Sandbox::create(server, CreateOptions("host"))).value();
    loop.wait(source.files().write("/root/state.txt", "prepared")).value();

    Sandboxes sandboxes(server);
    auto copies = loop.wait(sandboxes.fork(source.id(), ForkOptions(2))).value();
    int number = 0;
    for (const SandboxInfo& info : copies) {
        Sandbox copy = loop.wait(Sandbox::connect(server, info.id)).value();
        CommandRequest append("echo \" by " + std::to_string(++number) + "\" >> /root/state.txt");
        loop.wait(copy.commands().run(append)).value();
        std::cout << loop.wait(copy.files().read("/root/state.txt")).value();
        loop.wait(copy.kill()).value();
    }
    std::cout << loop.wait(source.files().read("/root/state.txt")).value() << "\n";
    loop.wait(source.kill()).value();
}
