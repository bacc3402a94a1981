# Third-party code. One folder of ours owns each of these (see CONTRIBUTING.md); nothing else may include it.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)           # headers only: Asio (runtime), Process v2 (keeper)
find_package(OpenSSL 3 REQUIRED)            # rendezvous/transport
find_path(DDRUN_MUNGE_HEADERS munge.h)      # optional, rendezvous/transport
find_package(yaml-cpp REQUIRED)             # launcher/config
find_package(spdlog REQUIRED)               # rendezvous/platform
if(DDRUN_BUILD_TESTS)
  find_package(Catch2 REQUIRED)             # tests; v2.13 and v3 both work
endif()

# Asio is used without deprecated names and never as a linked library.
add_library(ddrun_boost INTERFACE)
target_link_libraries(ddrun_boost INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(ddrun_boost INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ERROR_CODE_HEADER_ONLY)
