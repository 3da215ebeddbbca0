// Files of a sandbox: written, looked for, changed by a command, read back.
#include <iostream>
#include <opensandbox/blocking.hpp>
#include <opensandbox/sandbox.hpp>

int main() {
    using namespace opensandbox::sdk;
    EventLoop loop;
    Connection server = loop.connect().value();
    Sandbox sandbox = loop.wait(Sandbox::create(server, CreateOptions("host"))).value();
    Files files = sandbox.files();

    loop.wait(files.make_directories({"/tmp/work"})).value();
    loop.wait(files.write("/tmp/work/greeting.txt", "hello\n", Permissions(0600))).value();
    CommandRequest shout("tr a-z A-Z < greeting.txt > loud.txt");
    shout.working_directory = "/tmp/work";
    loop.wait(sandbox.commands().run(shout)).value();
    std::cout << loop.wait(files.read("/tmp/work/loud.txt")).value();
    for (const FileInfo& file : loop.wait(files.search("/tmp/work", "*.txt")).value()) {
        std::cout << file.path << " " << file.size << " " << std::oct << file.mode << std::dec
                  << "\n";
    }
    Result<std::string> missing = loop.wait(files.read("/tmp/work/none.txt"));
    std::cout << "none.txt: " << to_string(missing.error().code()) << "\n";
    loop.wait(sandbox.kill()).value();
}
