# The C++ client for programs outside this tree: `cmake --install DIR --component sdk --prefix X`
# puts headers, one static library, and what find_package(opensandbox) and pkg-config read there.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What only servers use of the network is a part apart: it would need libmnl and libnftnl.
set(objects)
foreach(module base json net http redis sdk)
    list(APPEND objects $<TARGET_OBJECTS:opensandbox_${module}>)
endforeach()
add_library(opensandbox_package STATIC ${objects}
    $<TARGET_OBJECTS:third_party_boost> $<TARGET_OBJECTS:third_party_toml>)
set_target_properties(opensandbox_package PROPERTIES
    OUTPUT_NAME opensandbox EXPORT_NAME opensandbox LINKER_LANGUAGE CXX)
target_compile_features(opensandbox_package INTERFACE cxx_std_20)
# As the library was compiled: asio's own code is in it.
set(sdk_definitions BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED
    BOOST_ASIO_HAS_CO_AWAIT)
target_compile_definitions(opensandbox_package INTERFACE ${sdk_definitions})
target_include_directories(opensandbox_package INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(opensandbox_package INTERFACE
    "$<INSTALL_INTERFACE:Boost::headers;Boost::json;OpenSSL::SSL;OpenSSL::Crypto;Threads::Threads>")

set(where ${CMAKE_INSTALL_LIBDIR}/cmake/opensandbox)
install(TARGETS opensandbox_package EXPORT opensandboxTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sdk)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/opensandbox
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sdk)
install(EXPORT opensandboxTargets NAMESPACE opensandbox:: DESTINATION ${where} COMPONENT sdk)

set(made ${CMAKE_BINARY_DIR}/generated/sdk)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/opensandboxConfig.cmake.in
    ${made}/opensandboxConfig.cmake INSTALL_DESTINATION ${where})
write_basic_package_version_file(${made}/opensandboxConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${made}/opensandboxConfig.cmake ${made}/opensandboxConfigVersion.cmake
    DESTINATION ${where} COMPONENT sdk)

file(RELATIVE_PATH sdk_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(TRANSFORM sdk_definitions PREPEND -D OUTPUT_VARIABLE sdk_flags)
list(JOIN sdk_flags " " sdk_flags)
configure_file(${CMAKE_CURRENT_LIST_DIR}/opensandbox.pc.in ${made}/opensandbox.pc @ONLY)
install(FILES ${made}/opensandbox.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT sdk)
