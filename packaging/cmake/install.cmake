# What goes where on a user's machine. Two components: `runtime` (the commands) and `sdk` (what a
# program is built against). Everything is found from where it lies, so the tree may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS ddrun ddrun-rendezvous RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
# Pages and changelogs lie compressed, and the same bytes each time.
function(install_compressed source destination component)
  get_filename_component(name ${source} NAME)
  set(packed ${CMAKE_BINARY_DIR}/compressed/${component}/${name}.gz)
  install(CODE "
    file(MAKE_DIRECTORY \"${CMAKE_BINARY_DIR}/compressed/${component}\")
    execute_process(COMMAND gzip -9nc \"${CMAKE_SOURCE_DIR}/${source}\" OUTPUT_FILE \"${packed}\"
      COMMAND_ERROR_IS_FATAL ANY)" COMPONENT ${component})
  install(FILES ${packed} DESTINATION ${destination} COMPONENT ${component})
endfunction()

install_compressed(packaging/man/ddrun.1 ${CMAKE_INSTALL_MANDIR}/man1 runtime)
install_compressed(packaging/man/ddrun-rendezvous.1 ${CMAKE_INSTALL_MANDIR}/man1 runtime)
foreach(package runtime:ddrun sdk:ddrun-dev)
  string(REPLACE ":" ";" package ${package})
  list(GET package 0 component)
  list(GET package 1 name)
  install_compressed(packaging/debian/changelog ${CMAKE_INSTALL_DATADIR}/doc/${name} ${component})
  install(FILES packaging/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
    COMPONENT ${component})
endforeach()
foreach(command ddrun ddrun-rendezvous)
  install(FILES packaging/completions/${command}.bash RENAME ${command}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
  install(FILES packaging/completions/_${command}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT runtime)
endforeach()
install(FILES packaging/systemd/ddrun-rendezvous.service
  DESTINATION lib/systemd/system COMPONENT runtime)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(DIRECTORY packaging/slurm DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)

install(DIRECTORY worker_sdk/include/ddrun DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sdk)
install(TARGETS ddrun_sdk ddrun_sdk_core ddrun_protocol EXPORT ddrun
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sdk)
set(config_directory ${CMAKE_INSTALL_LIBDIR}/cmake/ddrun)
install(EXPORT ddrun FILE ddrunTargets.cmake NAMESPACE ddrun:: DESTINATION ${config_directory}
  COMPONENT sdk)
configure_package_config_file(packaging/cmake/ddrunConfig.cmake.in
  ${CMAKE_BINARY_DIR}/ddrunConfig.cmake INSTALL_DESTINATION ${config_directory})
# Before 1.0 any minor version may change what a program is built against.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/ddrunConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
configure_file(packaging/cmake/ddrun.pc.in ${CMAKE_BINARY_DIR}/ddrun.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/ddrunConfig.cmake ${CMAKE_BINARY_DIR}/ddrunConfigVersion.cmake
  DESTINATION ${config_directory} COMPONENT sdk)
install(FILES ${CMAKE_BINARY_DIR}/ddrun.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT sdk)
