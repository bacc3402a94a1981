#pragma once

namespace ddrun::detail {

// Tells the process that made something from one forked from it later: the child has the memory but
// not the control thread, and must not speak for the worker.
class ForkGuard {
  public:
    ForkGuard();
    [[nodiscard]] bool in_child() const noexcept;
    // Throws Error{invalid_use} in a child.
    void check() const;

  private:
    int forks_at_start_;
};

}  // namespace ddrun::detail
