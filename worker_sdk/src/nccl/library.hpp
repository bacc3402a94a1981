#pragma once

#include "worker_sdk/core/nccl_ids.hpp"

#include <string>

namespace ddrun::detail {

// NCCL, loaded by name on first use and never unloaded (its threads run in it). Nothing here needs
// a GPU or a driver. Any thread.
class NcclLibrary {
  public:
    // DDRUN_NCCL_LIBRARY, or libnccl.so.2. Throws Error{environment} saying what was tried and how
    // to find it, or which symbol is missing.
    [[nodiscard]] static const NcclLibrary& get();

    [[nodiscard]] int version() const { return version_; }
    // A new id, nccl_id_bytes. Opens a listener and starts a thread that live until every rank has
    // called on them. Throws Error{system} in NCCL's words.
    [[nodiscard]] std::string make_id() const;

  private:
    NcclLibrary();

    struct Id {
        char bytes[nccl_id_bytes];
    };
    std::string path_;
    int version_ = 0;
    int (*get_unique_id_)(Id*) = nullptr;
    const char* (*get_error_string_)(int) = nullptr;
};

}  // namespace ddrun::detail
