#pragma once

#include "rendezvous/protocol/job_messages.hpp"
#include "rendezvous/protocol/time.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace ddrun::rendezvous {

// What happened to single nodes, gathered for a moment: when a switch fails, each of thousands of
// nodes hears one line and not thousands.
class News {
  public:
    // The latest news about a node replaces older ones that were not told yet.
    void add(int node, std::string words, bool warning, TimePoint now);
    // There is no news about this node after all; false: there was none, or it was told already.
    bool take_back(int node);

    [[nodiscard]] std::optional<TimePoint> due() const;
    // Something is due. The more `listeners` there are, the longer the next news are gathered: what
    // they cost does not grow faster than the group.
    [[nodiscard]] Notice take(TimePoint now, std::size_t listeners);

  private:
    struct Line {
        std::string words;
        bool warning = false;
    };
    std::map<int, Line> lines_;  // by node
    TimePoint due_{};
    TimePoint not_before_{};
};

}  // namespace ddrun::rendezvous
