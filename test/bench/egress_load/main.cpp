#include "measures.hpp"

#include <csignal>
#include <exception>
#include <iostream>
#include <map>

namespace {

using namespace opensandbox::bench;

struct Measure {
    void (*run)(const Arguments&);
    std::size_t arguments;
};

const std::map<std::string, Measure>& measures() {
    static const std::map<std::string, Measure> kMeasures{
        {"dns-rate", {dns_rate, 4}},   {"dns-latency", {dns_latency, 3}},
        {"dns-learn", {dns_learn, 3}}, {"tls-connect", {tls_connect, 5}},
        {"tls-hold", {tls_hold, 4}},   {"tls-download", {tls_download, 5}},
        {"tls-serve", {tls_serve, 4}}, {"judge", {judge, 1}},
        {"learn", {learn, 2}},         {"guard", {guard, 3}},
    };
    return kMeasures;
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    const Arguments arguments(argv + std::min(argc, 2), argv + argc);
    const auto found = argc < 2 ? measures().end() : measures().find(argv[1]);
    if (found == measures().end() || arguments.size() != found->second.arguments) {
        std::cerr << "what test/bench/egress.py runs: see measures.hpp\n";
        return 2;
    }
    try {
        found->second.run(arguments);
    } catch (const std::exception& failure) {
        std::cerr << argv[1] << ": " << failure.what() << '\n';
        return 1;
    }
    return 0;
}
