#pragma once

#include <string_view>

namespace ddrun::simulation {

// Bugs planted into the simulation's shells, to prove that the invariants find them.
struct Plants {
    bool done_leaves = false;     // a finished node leaves before the verdict
    bool early_gone = false;      // a node says that its workers are gone as soon as they should be
    bool no_fence = false;        // a node that lost contact does not freeze its workers
    bool forgotten_keys = false;  // a rebuilt server is not told the store's keys
    bool reused_keys = false;     // a node answers from the store of an older round
    bool renumbered = false;      // the place of a lost node moves the ranks of those who stayed

    // False: there is no such bug.
    [[nodiscard]] bool plant(std::string_view name) {
        const auto is = [&](std::string_view one, bool& bug) {
            return one == name && (bug = true);
        };
        return is("done_leaves", done_leaves) || is("early_gone", early_gone) ||
               is("no_fence", no_fence) || is("forgotten_keys", forgotten_keys) ||
               is("reused_keys", reused_keys) || is("renumbered", renumbered);
    }
};

}  // namespace ddrun::simulation
