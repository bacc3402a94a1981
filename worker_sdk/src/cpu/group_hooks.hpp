#pragma once

#include <functional>
#include <string>

namespace ddrun::detail {

// What a process group needs from its Worker. Called on the thread that is inside the collective,
// but for `ends`.
struct GroupHooks {
    std::function<bool()> wants_stop;      // has this rank heard of a stop request?
    std::function<void()> stop_is_agreed;  // all ranks now know that one of them has
    std::function<void(int rank, const std::string& words)>
        blame;                           // this worker fails due to `rank`
    std::function<std::string()> cause;  // what the agent said about the lost peer, if anything
    std::function<bool()> is_over = [] { return false; };  // nothing with peers can finish
    std::function<void()> ends = [] {};  // the group is being destroyed: it hears no more of ends
};

}  // namespace ddrun::detail
