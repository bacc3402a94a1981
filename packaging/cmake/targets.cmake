# ddrun_library(NAME SOURCES a.cpp ... [PUBLIC target ...] [PRIVATE target ...])
# One static library for one folder. Headers are found from the repository root; warnings are errors.
function(ddrun_compile_settings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND DDRUN_SANITIZE MATCHES "thread")
    target_compile_options(${target} PRIVATE -Wno-tsan)  # Asio's fences: seen by g++ as unsupported, not ours
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)  # false alarm on "text" + string (GCC PR 105651)
    if(DDRUN_SANITIZE)  # false alarm on coroutines, whose frames have an allocator of their own
      target_compile_options(${target} PRIVATE -Wno-mismatched-new-delete)
    endif()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND DDRUN_SANITIZE)
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)  # false in std::regex and std::variant
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

function(ddrun_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  ddrun_compile_settings(${name})
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()

function(ddrun_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PRIVATE" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  ddrun_compile_settings(${name})
  target_link_libraries(${name} PRIVATE ${ARG_PRIVATE})
endfunction()
