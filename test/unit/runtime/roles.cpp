#include "unit/roles.hpp"

#include "runtime/native/inside/broker_process.hpp"
#include "runtime/native/inside/slot_process.hpp"

#include <string_view>

namespace opensandbox::test {

std::optional<int> play_role(int argc, char** argv) {
    const std::string_view role = argc > 1 ? argv[1] : "";
    if (role == "slot") return runtime::native::slot_main(argc - 1, argv + 1);
    if (role == "broker") return runtime::native::broker_main(argc - 1, argv + 1);
    return std::nullopt;
}

}  // namespace opensandbox::test
