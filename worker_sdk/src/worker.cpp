#include "worker_sdk/src/driver.hpp"
#include "worker_sdk/src/worker_state.hpp"

#include <ddrun/worker.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace ddrun {
namespace {

WorkerEnv read_environment() {
    const WorkerEnvResult result = worker_env_from([](std::string_view name) {
        const char* value = std::getenv(std::string(name).c_str());
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    });
    if (!result.problem.empty())
        throw Error(ErrorKind::environment, "the worker's environment: " + result.problem);
    if (result.env.world_size > 1 && result.env.agent_socket.empty())
        throw Error(ErrorKind::environment,
                    "WORLD_SIZE=" + std::to_string(result.env.world_size) + ", but " +
                        std::string(variable::agent_socket) +
                        " is not set: ranks meet through ddrun, so start this program with ddrun");
    return result.env;
}

}  // namespace

Worker Worker::from_environment(const WorkerOptions& options) {
    return Worker(std::make_unique<State>(read_environment(), options));
}

Worker::Worker(std::unique_ptr<State> state) : state_(std::move(state)) {}
Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;
Worker::~Worker() = default;

int Worker::rank() const noexcept {
    return state_->env.rank;
}
int Worker::world_size() const noexcept {
    return state_->env.world_size;
}
int Worker::local_rank() const noexcept {
    return state_->env.local_rank;
}
int Worker::local_world_size() const noexcept {
    return state_->env.local_world_size;
}
int Worker::node_rank() const noexcept {
    return state_->env.node_rank;
}
int Worker::node_count() const noexcept {
    return state_->env.node_count;
}
int Worker::round() const noexcept {
    return state_->env.round;
}
int Worker::restart_count() const noexcept {
    return state_->env.restart_count;
}
const std::string& Worker::job_id() const noexcept {
    return state_->env.job_id;
}

const Device& Worker::device() {
    const std::lock_guard lock(state_->mutex);
    if (state_->device) return *state_->device;
    state_->device = detail::choose_device(detail::ask_driver(), local_rank(), local_world_size());
    if (rank() == 0 && state_->device->kind == DeviceKind::cpu)
        std::fprintf(stderr, "%s\n", state_->device->words.c_str());
    return *state_->device;
}

Store& Worker::store() {
    return *state_->store;
}

Log& Worker::log() noexcept {
    return state_->log;
}

ProcessGroup& Worker::process_group() {
    const std::lock_guard lock(state_->mutex);
    if (!state_->group) state_->group = state_->groups.make_world();
    return *state_->group;
}

std::unique_ptr<ProcessGroup> Worker::new_group(std::vector<int> ranks) {
    const std::lock_guard lock(state_->mutex);
    return state_->groups.make(std::move(ranks));
}

void Worker::barrier(Store::Timeout timeout) {
    state_->store->barrier("ddrun.barrier", timeout);
}

bool Worker::should_stop() {
    state_->stop.arm();
    return state_->stop.should_stop();
}

StopRequest Worker::stop_request() const {
    return state_->stop.describe();
}

void Worker::progress(std::int64_t step) noexcept {
    if (state_->link) state_->link->progress(step);
}

void Worker::never_retry(std::string_view words) {
    const std::string text(words);
    if (state_->link) state_->link->tell(rendezvous::NeverRetry{text});
    throw Error(ErrorKind::never_retry, text);
}

}  // namespace ddrun
