#include "controller/definition/permissions.hpp"

#include "runtime/kubernetes/names.hpp"

#include <array>
#include <span>
#include <string_view>

namespace opensandbox::controller {
namespace {

namespace kubernetes = runtime::kubernetes;

struct Permission {
    std::string_view group;
    std::string_view resource;
    std::string_view verbs;  ///< with blanks between
};

constexpr std::array kControllerMay{
    Permission{kubernetes::kGroup, "batchsandboxes", "list watch delete patch"},
    Permission{kubernetes::kGroup, "batchsandboxes/status", "patch"},
    Permission{kubernetes::kGroup, "batchsandboxes/finalizers", "update"},
    Permission{kubernetes::kGroup, "pools", "list watch patch"},
    Permission{kubernetes::kGroup, "pools/status", "patch"},
    Permission{kubernetes::kGroup, "pools/finalizers", "update"},
    Permission{"", "pods", "get list watch create delete patch"},
    Permission{"", "events", "create"},
};

constexpr std::array kElectionMay{
    Permission{"coordination.k8s.io", "leases", "get create update"},
};

constexpr std::array kServerMay{
    Permission{kubernetes::kGroup, "batchsandboxes", "get list watch create delete patch"},
    Permission{kubernetes::kGroup, "pools", "list watch create delete patch"},
    Permission{"", "pods", "list watch delete patch"},
    Permission{"", "pods/log", "get"},
    Permission{"", "secrets", "create"},
    Permission{"", "persistentvolumeclaims", "get list create delete patch"},
};

json::array rules_of(std::span<const Permission> permissions) {
    json::array rules;
    for (const Permission& permission : permissions) {
        json::array verbs;
        std::string_view rest = permission.verbs;
        while (!rest.empty()) {
            const std::string_view verb = rest.substr(0, rest.find(' '));
            verbs.emplace_back(verb);
            rest.remove_prefix(std::min(rest.size(), verb.size() + 1));
        }
        json::object rule;
        rule["apiGroups"] = json::array{permission.group};
        rule["resources"] = json::array{permission.resource};
        rule["verbs"] = std::move(verbs);
        rules.emplace_back(std::move(rule));
    }
    return rules;
}

}  // namespace

json::array controller_rules() {
    return rules_of(kControllerMay);
}

json::array election_rules() {
    return rules_of(kElectionMay);
}

json::array server_rules() {
    return rules_of(kServerMay);
}

}  // namespace opensandbox::controller
