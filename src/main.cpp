#include "agent/role/install.hpp"
#include "agent/role/role.hpp"
#include "agent/role/task_executor.hpp"
#include "cli/command_line.hpp"
#include "controller/role/role.hpp"
#include "egress/role/role.hpp"
#include "mcp/role.hpp"
#include "runtime/native/inside/broker_process.hpp"
#include "runtime/native/inside/gvisor_slot.hpp"
#include "runtime/native/inside/slot_process.hpp"
#include "runtime/native/network/uplink.hpp"
#include "runtime/native/spawner/egress/enforcer_process.hpp"
#include "runtime/native/spawner/spawner.hpp"
#include "server/role/serve.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <span>
#include <string_view>

namespace {

struct Role {
    std::string_view name;
    int (*main)(int argc, char** argv);
};

/// Every part that this executable plays; what is not named here is the command line.
constexpr std::array kRoles{
    Role{"serve", opensandbox::server::main},
    Role{"init-config", opensandbox::server::init_config_main},
    Role{"exec", opensandbox::agent::main},
    Role{"execd", opensandbox::agent::main},
    Role{"bootstrap", opensandbox::agent::bootstrap_main},
    Role{"bootstrap.sh", opensandbox::agent::bootstrap_main},
    Role{"egress", opensandbox::egress::run_sidecar},
    Role{"install-agent", opensandbox::agent::install_main},
    Role{"task-executor", opensandbox::agent::task_executor_main},
    Role{"controller", opensandbox::controller::main},
    Role{"mcp", opensandbox::mcp::main},
    Role{"opensandbox-mcp", opensandbox::mcp::main},
    Role{"guest", opensandbox::runtime::native::guest_main},
    Role{"spawner", opensandbox::runtime::native::spawner_main},
    Role{"slot", opensandbox::runtime::native::slot_main},
    Role{"broker", opensandbox::runtime::native::broker_main},
    Role{"enforcer", opensandbox::runtime::native::enforcer_main},
    Role{"uplink", opensandbox::runtime::native::uplink_main},
};

const Role* find_role(std::string_view name) {
    const auto* role = std::ranges::find(kRoles, name, &Role::name);
    return role == kRoles.end() ? nullptr : role;
}

std::string_view base_name(const char* path) {
    std::string_view text(path ? path : "");
    return text.substr(text.find_last_of('/') + 1);
}

/// `egress` is a group of commands, too: with a verb behind it, or called as `osb`, it is the
/// command line's.
bool is_command(int argc, char** argv) {
    if (std::string_view(argv[1]) != "egress") return false;
    return base_name(argv[0]) == "osb" || (argc > 2 && argv[2][0] != '-');
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    if (argc > 0) {
        if (const Role* role = find_role(base_name(argv[0]))) return role->main(argc, argv);
    }
    if (argc > 1 && !is_command(argc, argv)) {
        if (const Role* role = find_role(argv[1])) return role->main(argc - 1, argv + 1);
    }
    return opensandbox::cli::main(argc, argv);
}
