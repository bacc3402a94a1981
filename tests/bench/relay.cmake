add_executable(bench_relay_lines relay_lines.cpp)
ddrun_compile_settings(bench_relay_lines)
add_executable(bench_relay relay.cpp)
ddrun_compile_settings(bench_relay)
target_link_libraries(bench_relay PRIVATE ddrun_output)
target_compile_definitions(bench_relay PRIVATE
  DDRUN_RELAY_LINES="$<TARGET_FILE:bench_relay_lines>" DDRUN_BINARY="$<TARGET_FILE:ddrun>")
add_dependencies(bench_relay bench_relay_lines ddrun)
