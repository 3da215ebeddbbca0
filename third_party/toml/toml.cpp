// The bodies of toml++, once for the whole program.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
