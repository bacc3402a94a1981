#pragma once

#include "rendezvous/platform/unique_fd.hpp"

#include <cstddef>
#include <string_view>

namespace ddrun::launcher {

// An inherited descriptor that lines are written to. Other processes share its file description, so
// its flags are never changed: a pipe or terminal is opened once more for a description of our own,
// a socket is sent to with MSG_DONTWAIT, and where neither works a write is as small as poll()
// promised. Plain files are written through the inherited description, whose offset others share.
class ConsoleDescriptor {
  public:
    enum class State {
        open,
        refused,  // no room now; wait for `poll_fd` to be writable
        failed,   // `error` may pass: a full disk
        gone,     // `error` is for good: nobody can read this any more
    };
    struct Written {
        std::size_t bytes = 0;
        State state = State::open;
        int error = 0;
    };

    explicit ConsoleDescriptor(int inherited);

    // Writes what fits; a file or device may block for as long as its disk does.
    [[nodiscard]] Written write(std::string_view bytes) const;

    // A pipe with a busy reader gets more room: fewer switches between it and us.
    void enlarge() const;
    // Gives up our own description, so that a reader sees its end; nothing is written afterwards.
    void release() { own_.reset(); }

    // Was closed when we came.
    [[nodiscard]] bool closed() const { return kind_ == Kind::closed; }
    [[nodiscard]] bool is_terminal() const { return kind_ == Kind::terminal; }
    // For epoll; -1 when a write never has to wait.
    [[nodiscard]] int poll_fd() const;

    // Both descriptors lead to one file, pipe or terminal: their lines need one queue.
    [[nodiscard]] static bool same_target(int one, int other);

  private:
    enum class Kind { closed, file, pipe, terminal, socket };

    [[nodiscard]] static Kind kind_of(int fd);
    [[nodiscard]] Written write_file(std::string_view bytes) const;
    [[nodiscard]] Written write_once(std::string_view bytes) const;
    [[nodiscard]] Written write_small(std::string_view bytes) const;
    [[nodiscard]] Written failure(std::size_t written, int error) const;

    int inherited_;
    Kind kind_;
    UniqueFd own_;  // non-blocking description of our own, when one could be had
};

}  // namespace ddrun::launcher
