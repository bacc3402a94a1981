#pragma once

#include <string>

namespace ddrun::rendezvous {

// Tells a service manager (systemd's sd_notify): "READY=1". `socket`: NOTIFY_SOCKET; empty: there
// is none. Never blocks; a manager that does not listen is no error of ours.
void notify_service_manager(const std::string& socket, const std::string& state);

}  // namespace ddrun::rendezvous
