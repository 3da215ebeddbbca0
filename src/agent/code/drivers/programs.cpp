#include "agent/code/drivers/driver.hpp"

namespace opensandbox::agent::program {
namespace {

// Made at build time from the files of the same names beside this one.
constexpr char kPythonText[] = {
#include "agent/code/drivers/python_driver.py.inc"
};
constexpr char kPythonRichText[] = {
#include "agent/code/drivers/python_rich.py.inc"
};
constexpr char kJavaScriptText[] = {
#include "agent/code/drivers/javascript_driver.js.inc"
};
constexpr char kBashText[] = {
#include "agent/code/drivers/bash_driver.sh.inc"
};
constexpr char kJavaText[] = {
#include "agent/code/drivers/JavaDriver.java.inc"
};

}  // namespace

const std::string_view kPython(kPythonText, sizeof kPythonText);
const std::string_view kPythonRich(kPythonRichText, sizeof kPythonRichText);
const std::string_view kJavaScript(kJavaScriptText, sizeof kJavaScriptText);
const std::string_view kBash(kBashText, sizeof kBashText);
const std::string_view kJava(kJavaText, sizeof kJavaText);

}  // namespace opensandbox::agent::program
