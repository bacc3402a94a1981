#include "worker_sdk/src/control/control_link.hpp"

#include "rendezvous/platform/quiet_thread.hpp"
#include "worker_sdk/src/failure.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

namespace ddrun::detail {
namespace {

constexpr auto send_patience = std::chrono::seconds(1);
constexpr Duration long_pause = std::chrono::seconds(1);
constexpr std::size_t gathered_bytes = 16 * 1024;  // leave at once beyond this
constexpr std::size_t most_unsent = 1 << 20;
constexpr std::int64_t no_step = std::numeric_limits<std::int64_t>::min();

TimePoint clock_now() {
    return std::chrono::steady_clock::now();
}

// The request's id; a hello has none of its own.
std::uint64_t give_id(rendezvous::FromWorker& request, std::uint64_t next) {
    return std::visit(
        [&](auto& message) {
            if constexpr (requires { message.id; }) return message.id = next;
            return AgentLink::hello_id;
        },
        request);
}

UniqueFd make_eventfd() {
    UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd)
        throw Error(ErrorKind::system,
                    std::string("no eventfd for the worker: ") + std::strerror(errno));
    return fd;
}

template <std::size_t Count>
void poll_until(std::array<pollfd, Count> fds, std::optional<TimePoint> deadline) {
    timespec left{};
    if (deadline) {
        const auto rest = std::max(*deadline - clock_now(), Duration::zero());
        left.tv_sec = static_cast<time_t>(rest / std::chrono::seconds(1));
        left.tv_nsec = static_cast<long>((rest % std::chrono::seconds(1)).count());
    }
    ::ppoll(fds.data(), fds.size(), deadline ? &left : nullptr, nullptr);
}

std::optional<TimePoint> earlier(std::optional<TimePoint> a, TimePoint b) {
    return a ? std::min(*a, b) : b;
}

}  // namespace

class ControlLink::Call {
  public:
    using Outcome = std::variant<std::monostate, Reply, Failure>;

    [[nodiscard]] bool is_answered() const { return answered_.load(std::memory_order_acquire); }
    void answer(Outcome outcome) {
        outcome_ = std::move(outcome);
        answered_.store(true, std::memory_order_release);
        if (asleep) changed.notify_one();
    }
    // Once, after is_answered().
    [[nodiscard]] Reply take() {
        if (const auto* failure = std::get_if<Failure>(&outcome_)) throw_failure(*failure);
        return std::get<Reply>(std::move(outcome_));
    }

    std::condition_variable changed;  // answered, or the place of the reading thread is free
    bool asleep = false;

  private:
    Outcome outcome_;
    std::atomic<bool> answered_ = false;
};

ControlLink::ControlLink(UniqueFd socket, OnStop on_stop)
    : on_stop_(std::move(on_stop)),
      wake_(make_eventfd()),
      socket_(std::move(socket)),
      step_(no_step),
      thread_(start_quiet_thread("ddrun-control", [this] { run(); })) {}

ControlLink::~ControlLink() {
    if (guard_.in_child()) {
        thread_.detach();  // it does not exist here
        return;
    }
    {
        const Lock lock(mutex_);
        const std::int64_t step = step_.exchange(no_step);
        if (step != no_step) feed(AgentLink::Stepped{step});
    }
    say_and_wait_until_sent(AgentLink::Ending{});
    {
        const Lock lock(mutex_);
        ending_ = true;
    }
    wake();
    thread_.join();
    const Lock lock(mutex_);
    feed(AgentLink::Closed{"the Worker has ended"});
}

// --- requests -----------------------------------------------------------------------------------

ControlLink::CallPointer ControlLink::begin(rendezvous::FromWorker request, Subject what,
                                            std::chrono::milliseconds timeout) {
    guard_.check();
    auto call = std::make_shared<Call>();
    const TimePoint deadline = clock_now() + timeout;
    Lock lock(mutex_);
    wait_for_room(lock);
    const std::uint64_t id = give_id(request, next_id_++);
    calls_.emplace(id, call);
    feed(AgentLink::Asked{id, std::move(request), deadline, std::move(what)});
    used_ = true;
    if (attention_ != Attention::brief || socket_.unsent_bytes() > gathered_bytes) flush();
    return call;
}

bool ControlLink::is_finished(const CallPointer& call) {
    if (call->is_answered()) return true;
    guard_.check();
    const Lock lock(mutex_);
    used_ = true;
    flush();
    if (!reading_) read_socket();
    perform(core_.advance_to(clock_now()));
    return call->is_answered();
}

ControlLink::Reply ControlLink::finish(const CallPointer& call) {
    if (!call->is_answered()) {
        guard_.check();
        Lock lock(mutex_);
        used_ = true;
        flush();
        wait_for_answer(lock, *call);
    }
    return call->take();
}

void ControlLink::wait_for_answer(Lock& lock, Call& call) {
    while (!call.is_answered()) {
        if (!reading_) {
            read_until_answered(lock, call);
            continue;
        }
        sleeping_.push_back(&call);
        call.asleep = true;
        if (const auto deadline = core_.next_deadline())
            call.changed.wait_until(lock, *deadline);
        else
            call.changed.wait(lock);
        call.asleep = false;
        std::erase(sleeping_, &call);
        perform(core_.advance_to(clock_now()));
    }
    if (!reading_) let_another_read();
}

void ControlLink::read_until_answered(Lock& lock, Call& call) {
    reading_ = true;
    ++reads_;
    while (!call.is_answered()) {
        wait_for_socket(lock, POLLIN, core_.next_deadline());
        read_socket();
        perform(core_.advance_to(clock_now()));
        flush();
    }
    reading_ = false;
}

// Somebody must hear the agent: another waiting thread, or else the control thread.
void ControlLink::let_another_read() {
    if (!sleeping_.empty())
        sleeping_.front()->changed.notify_one();
    else if (attention_ == Attention::none)
        wake();
}

void ControlLink::wait_for_room(Lock& lock) {
    while (socket_.is_open() && socket_.unsent_bytes() > most_unsent) {
        flush();
        if (socket_.unsent_bytes() <= most_unsent) return;
        const bool reader = !std::exchange(reading_, true);  // else only for room
        wait_for_socket(lock, reader ? POLLIN | POLLOUT : POLLOUT, clock_now() + gathering);
        if (!reader) continue;
        read_socket();
        reading_ = false;
        let_another_read();
    }
}

// --- notices ------------------------------------------------------------------------------------

void ControlLink::tell(const rendezvous::FromWorker& notice) {
    say_and_wait_until_sent(AgentLink::Told{notice});
}

void ControlLink::blame(int rank, const std::string& words) {
    say_and_wait_until_sent(AgentLink::Blamed{rank, words});
}

void ControlLink::say_and_wait_until_sent(AgentLink::Event event) {
    guard_.check();
    const TimePoint deadline = clock_now() + send_patience;
    Lock lock(mutex_);
    feed(std::move(event));
    const std::uint64_t enough = socket_.queued();
    flush();
    while (socket_.is_open() && socket_.sent() < enough && clock_now() < deadline) {
        wait_for_socket(lock, POLLOUT, deadline);
        flush();
    }
}

void ControlLink::progress(std::int64_t step) noexcept {
    step_.store(step);
    if (!quiet_.load() && !guard_.in_child()) wake();
}

void ControlLink::run_there(const std::function<void()>& work) {
    guard_.check();
    std::future<void> done;
    {
        const Lock lock(mutex_);
        errands_.push_back({work, {}});
        done = errands_.back().done.get_future();
    }
    wake();
    done.wait();
}

void ControlLink::listen_to_end(OnEnd on_end) {
    const Lock lock(mutex_);
    on_end_ = std::move(on_end);
    if (on_end_ && end_) on_end_(*end_);
}

void ControlLink::wake() noexcept {
    const std::uint64_t one = 1;
    // Fails only where the counter is already raised, which wakes as well.
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

// --- the socket, with the lock held -------------------------------------------------------------

void ControlLink::wait_for_socket(Lock& lock, short events, std::optional<TimePoint> deadline) {
    if (!socket_.is_open()) return;
    if (socket_.has_unsent()) events = static_cast<short>(events | POLLOUT);
    const std::array<pollfd, 1> fds = {{{socket_.fd(), events, 0}}};
    lock.unlock();
    poll_until(fds, deadline);
    lock.lock();
}

void ControlLink::read_socket() {
    if (!socket_.is_open()) return;
    const auto read = socket_.receive();
    while (socket_.is_open()) {
        auto message = socket_.next();
        if (!message) break;
        if (std::holds_alternative<rendezvous::ArenaReady>(*message))
            descriptor_ = socket_.take_descriptor();
        feed(AgentLink::Received{std::move(*message)});
    }
    if (!socket_.is_open()) return;
    if (read == AgentSocket::Read::malformed || socket_.malformed())
        feed(AgentLink::Closed{"the agent of this node sent something that is not a message"});
    else if (read == AgentSocket::Read::closed)
        feed(AgentLink::Closed{"the agent of this node has closed the connection"});
}

void ControlLink::flush() {
    give_to_kernel();
    // The control thread waits for room; in brief attention it comes round by itself.
    if (socket_.is_open() && socket_.has_unsent() && attention_ != Attention::brief) wake();
}

void ControlLink::give_to_kernel() {
    if (!socket_.is_open() || socket_.flush()) return;
    read_socket();  // its last words, such as a refusal
    feed(AgentLink::Closed{"the agent of this node has closed the connection"});
}

void ControlLink::feed(AgentLink::Event event) {
    perform(core_.step(std::move(event), clock_now()));
}

void ControlLink::perform(AgentLink::Actions actions) {
    for (auto& action : actions) std::visit([this](auto& one) { act(one); }, action);
}

void ControlLink::act(const AgentLink::Send& action) {
    if (socket_.is_open()) socket_.queue(action.message);
}

void ControlLink::act(AgentLink::Answer& action) {
    const auto found = calls_.find(action.id);
    if (found == calls_.end()) return;
    const CallPointer call = std::move(found->second);
    calls_.erase(found);
    if (auto* failure = std::get_if<Failure>(&action.outcome)) {
        // Before the thread that asked goes on, what the core sent ahead of the answer must be out.
        if (socket_.is_open()) (void)socket_.flush();
        return call->answer(std::move(*failure));
    }
    auto& message = std::get<rendezvous::ToWorker>(action.outcome);
    const bool carries = std::holds_alternative<rendezvous::ArenaReady>(message);
    call->answer(Reply{std::move(message), carries ? std::move(descriptor_) : UniqueFd()});
}

void ControlLink::act(const AgentLink::RaiseStop& action) {
    on_stop_(action.signal, action.deadline);
}

void ControlLink::act(const AgentLink::EndWaits& action) {
    end_ = action.failure;
    if (on_end_) on_end_(*end_);
}

void ControlLink::act(const AgentLink::Close&) {
    socket_.close();
}

// --- on the control thread ----------------------------------------------------------------------

void ControlLink::run() {
    Lock lock(mutex_);
    while (!ending_) {
        pause(lock);
        take_errands(lock);
        if (!reading_) read_socket();
        perform(core_.advance_to(clock_now()));
        take_progress();
        give_to_kernel();
    }
    take_errands(lock);
}

void ControlLink::pause(Lock& lock) {
    choose_attention();
    std::optional<TimePoint> deadline = core_.next_deadline();
    if (attention_ == Attention::brief) deadline = earlier(deadline, clock_now() + gathering);
    if (attention_ == Attention::none) deadline = earlier(deadline, clock_now() + long_pause);
    const bool full = socket_.is_open() && attention_ == Attention::full;
    const bool full_out = socket_.is_open() && socket_.has_unsent();
    const auto events = static_cast<short>((full ? POLLIN : 0) | (full_out ? POLLOUT : 0));
    const std::array<pollfd, 2> fds = {
        {{wake_.get(), POLLIN, 0}, {events != 0 ? socket_.fd() : -1, events, 0}}};
    lock.unlock();
    poll_until(fds, deadline);
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t drained = ::read(wake_.get(), &count, sizeof count);
    lock.lock();
}

void ControlLink::choose_attention() {
    const bool same_reader = reading_ && reads_ == reads_seen_;
    reads_seen_ = reads_;
    if (std::exchange(used_, false))
        attention_ = Attention::brief;
    else if (same_reader)
        attention_ = Attention::none;
    else
        attention_ = reading_ ? Attention::brief : Attention::full;
}

void ControlLink::take_errands(Lock& lock) {
    auto errands = std::exchange(errands_, {});
    lock.unlock();
    for (auto& errand : errands) {
        errand.work();
        errand.done.set_value();
    }
    lock.lock();
}

// While the core is quiet nobody wakes this thread for a step; the end of the quiet time does.
void ControlLink::take_progress() {
    quiet_.store(core_.quiet());
    if (core_.quiet()) return;
    const std::int64_t step = step_.exchange(no_step);
    if (step == no_step) return;
    feed(AgentLink::Stepped{step});
    quiet_.store(core_.quiet());
}

}  // namespace ddrun::detail
