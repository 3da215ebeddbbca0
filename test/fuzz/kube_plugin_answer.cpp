#include "kube/access/plugin_answer.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any text is a usable credential or an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    kube::CredentialPlugin plugin;
    plugin.api_version = "client.authentication.k8s.io/v1";
    const auto answer =
        kube::read_plugin_answer({reinterpret_cast<const char*>(data), size}, plugin);
    if (!answer) {
        if (answer.error().code() != ErrorCode::invalid_argument) std::abort();
        return 0;
    }
    if (answer->token.empty() && answer->cert_pem.empty()) std::abort();
    if (answer->cert_pem.empty() != answer->key_pem.empty()) std::abort();
    if (answer->token.find_first_of("\r\n ") != std::string::npos) std::abort();
    return 0;
}
