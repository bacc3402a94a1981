#include "worker_sdk/core/nccl_ids.hpp"
#include "worker_sdk/src/failure.hpp"
#include "worker_sdk/src/nccl/library.hpp"
#include "worker_sdk/src/worker_state.hpp"

#include <cstring>
#include <map>

namespace ddrun {
namespace {

using detail::PublishedNcclId;

std::vector<PublishedNcclId> fetch(Store& store, const std::vector<std::string>& keys,
                                   Store::Timeout timeout) {
    std::vector<PublishedNcclId> published;
    for (const auto& bytes : store.get_all(keys, timeout)) {
        auto id = detail::decode_nccl_id(bytes);
        if (!id) detail::throw_foreign_value(keys[published.size()]);
        published.push_back(std::move(*id));
    }
    return published;
}

}  // namespace

std::vector<NcclUniqueId> Worker::nccl_unique_ids(std::string_view name, Store::Timeout timeout) {
    const auto& library = detail::NcclLibrary::get();
    const int call = state_->next_nccl_call(name);
    if (const auto index = detail::nccl_id_made_by(world_size(), rank()))
        store().set(detail::nccl_id_key(name, call, *index),
                    detail::encode_nccl_id({library.version(), library.make_id()}));
    std::vector<std::string> keys;
    for (int index = 0; index < detail::nccl_id_count(world_size()); ++index)
        keys.push_back(detail::nccl_id_key(name, call, index));
    const auto published = fetch(store(), keys, timeout);
    const auto objection =
        detail::nccl_objection(world_size(), rank(), library.version(), published);
    if (!objection.empty()) throw Error(ErrorKind::refused, objection);
    std::vector<NcclUniqueId> ids(published.size());
    for (std::size_t i = 0; i < ids.size(); ++i)
        std::memcpy(ids[i].bytes, published[i].id.data(), sizeof ids[i].bytes);
    return ids;
}

int Worker::State::next_nccl_call(std::string_view name) {
    const std::lock_guard lock(mutex);
    return nccl_calls[std::string(name)]++;
}

}  // namespace ddrun
