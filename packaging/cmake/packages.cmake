# `cpack --config build/release/CPackConfig.cmake -G DEB|RPM|TGZ`: two packages, ddrun and ddrun-dev.
set(CPACK_PACKAGE_NAME ddrun)
set(CPACK_PACKAGE_VENDOR "the ddrun authors")
set(CPACK_PACKAGE_CONTACT "the ddrun authors <ddrun-authors@users.noreply.github.com>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "process launcher and rendezvous agent for training jobs")
set(CPACK_PACKAGE_DESCRIPTION "Starts one worker per GPU on one or many machines, tells each its rank,
keeps the job alive when something dies and tells the truth about why it
ended. Runs on a workstation, as a Slurm step or as a pod's entrypoint.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime sdk)
set(CPACK_COMPONENTS_GROUPING IGNORE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ddrun)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
# Loaded by name, and only by jobs of several machines.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "libssl3 | libssl3t64")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "libmunge2")
set(CPACK_DEBIAN_SDK_PACKAGE_NAME ddrun-dev)
set(CPACK_DEBIAN_SDK_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_SDK_DESCRIPTION "What worker programs are built against: headers, a static library,
CMake and pkg-config files.")

set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_RUNTIME_PACKAGE_NAME ddrun)
set(CPACK_RPM_SDK_PACKAGE_NAME ddrun-devel)
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/lib/systemd /usr/lib/systemd/system
  /usr/share/zsh /usr/share/zsh/vendor-completions /usr/share/bash-completion
  /usr/share/bash-completion/completions /usr/lib/cmake /usr/lib/pkgconfig)

set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
include(CPack)
