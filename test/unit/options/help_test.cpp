#include "options/help.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace opensandbox::options;

TEST_CASE("rows of help stand in columns") {
    const std::vector<Option> table{
        {.name = "--image",
         .letter = 'i',
         .value = "IMAGE",
         .help = "One\nor two.",
         .required = true},
        {.name = "--a-long-name-of-some-option", .help = "Says so", .variable = "SO"},
        {.name = "--hidden"},
    };
    CHECK(help_rows(table, 20) ==
          "  -i, --image IMAGE\n"
          "                    One\n"
          "                    or two. Required.\n"
          "  --a-long-name-of-some-option\n"
          "                    Says so (env SO)\n");
    CHECK(help_rows({table.data() + 1, 1}, 40, true) ==
          "      --a-long-name-of-some-option      Says so (env SO)\n");
}
