#include "launcher/runtime/local_job_link.hpp"

#include "rendezvous/platform/clock.hpp"

#include <algorithm>
#include <utility>

namespace ddrun::launcher {

LocalJobLink::LocalJobLink(const rendezvous::JobRules& rules, Ears ears)
    : coordinator_(rules), ears_(std::move(ears)) {}

void LocalJobLink::say(const rendezvous::ToCoordinator& message) {
    perform(coordinator_.step({0, message}, detail::now()));
}

void LocalJobLink::begin_round(const rendezvous::RoundGranted& grant) {
    store_.emplace(grant.world_size);
    round_ = grant.round;
}

void LocalJobLink::end_round(int round) {
    if (round == round_) store_.reset();
}

void LocalJobLink::ask(int round, int rank, rendezvous::FromWorker request) {
    if (store_ && round == round_) {
        perform(store_->step({rank, std::move(request)}, detail::now()));
    }
}

void LocalJobLink::forget(int round, int rank) {
    if (store_ && round == round_) store_->forget(rank);
}

void LocalJobLink::abort_waits(int round, const std::string& words) {
    if (store_ && round == round_) perform(store_->abort(words));
}

void LocalJobLink::advance_to(TimePoint now) {
    perform(coordinator_.advance_to(now));
    if (store_) perform(store_->advance_to(now));
}

std::optional<TimePoint> LocalJobLink::next_deadline() const {
    const auto job = coordinator_.next_deadline();
    const auto waits = store_ ? store_->next_deadline() : std::nullopt;
    return !job ? waits : !waits ? job : std::min(*job, *waits);
}

void LocalJobLink::close(bool) {
    ears_.closed();
}

std::string LocalJobLink::describe() const {
    return coordinator_.describe();
}

void LocalJobLink::perform(const rendezvous::Coordinator::Actions& answers) {
    for (const rendezvous::NodeAnswer& answer : answers) ears_.hear(answer.message);
}

void LocalJobLink::perform(const rendezvous::KeyValueStore::Actions& replies) {
    for (const rendezvous::StoreReply& reply : replies) {
        ears_.answer(round_, reply.client, reply.reply);
    }
}

}  // namespace ddrun::launcher
