#include "registry/credential.hpp"

#include "base/base64.hpp"

namespace opensandbox::registry {

std::string basic_authorization(const Credential& credential) {
    return "Basic " + to_base64(credential.username + ":" + credential.password);
}

}  // namespace opensandbox::registry
