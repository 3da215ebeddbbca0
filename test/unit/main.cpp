#define CATCH_CONFIG_RUNNER
#include "unit/roles.hpp"

#include <catch2/catch.hpp>

int main(int argc, char** argv) {
    if (opensandbox::test::play_role) {
        if (const auto code = opensandbox::test::play_role(argc, argv)) return *code;
    }
    return Catch::Session().run(argc, argv);
}
