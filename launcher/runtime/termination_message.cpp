#include "launcher/runtime/termination_message.hpp"

#include "launcher/core/termination_text.hpp"
#include "rendezvous/platform/unique_fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ddrun::launcher {

void leave_termination_message(const Variables& environment, const std::string& summary,
                               int exit_code) {
    if (!environment.contains("KUBERNETES_SERVICE_HOST") || exit_code == 0) return;
    // Not created and not replaced: it is a mount. O_NONBLOCK, because somebody may have put a pipe
    // there.
    const UniqueFd file(
        ::open("/dev/termination-log", O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    struct stat facts {};
    if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
    const std::string text = termination_text(summary, exit_code);
    if (::ftruncate(file.get(), 0) != 0) return;
    (void)!::write(file.get(), text.data(), text.size());
}

}  // namespace ddrun::launcher
