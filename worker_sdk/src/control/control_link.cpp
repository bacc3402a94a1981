#include "worker_sdk/src/control/control_link.hpp"

#include "worker_sdk/src/failure.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

namespace ddrun::detail {
namespace {

constexpr auto send_patience = std::chrono::seconds(1);
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

// Signals belong to the program's own threads.
std::thread start_thread(std::function<void()> body) {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread(std::move(body));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::pthread_setname_np(thread.native_handle(), "ddrun-control");
    return thread;
}

}  // namespace

ControlLink::ControlLink(UniqueFd socket, OnStop on_stop)
    : on_stop_(std::move(on_stop)),
      wake_(make_eventfd()),
      step_(no_step),
      socket_(std::move(socket)),
      thread_(start_thread([this] { run(); })) {}

ControlLink::~ControlLink() {
    if (guard_.in_child()) {
        thread_.detach();  // it does not exist here
        return;
    }
    post({AgentLink::Ending{}, [this] { ending_ = clock_now() + send_patience; }, {}, {}});
    thread_.join();
}

ControlLink::Reply ControlLink::ask(rendezvous::FromWorker request, const std::string& what,
                                    std::chrono::milliseconds timeout) {
    guard_.check();
    const std::uint64_t id = give_id(request, next_id_.fetch_add(1));
    std::future<Outcome> answer;
    {
        const std::lock_guard lock(mutex_);
        answer = waiting_[id].get_future();
    }
    post({AgentLink::Asked{id, std::move(request), clock_now() + timeout, what}, {}, {}, {}});
    Outcome outcome = answer.get();
    if (const auto* failure = std::get_if<Failure>(&outcome)) throw_failure(*failure);
    return std::get<Reply>(std::move(outcome));
}

void ControlLink::tell(const rendezvous::FromWorker& notice) {
    post_and_wait_until_sent(AgentLink::Told{notice});
}

void ControlLink::blame(int rank, const std::string& words) {
    post_and_wait_until_sent(AgentLink::Blamed{rank, words});
}

void ControlLink::post_and_wait_until_sent(AgentLink::Event event) {
    guard_.check();
    std::promise<void> sent;
    const auto done = sent.get_future();
    post({std::move(event), {}, {}, std::move(sent)});
    done.wait();
}

void ControlLink::progress(std::int64_t step) noexcept {
    step_.store(step);
    if (!quiet_.load() && !guard_.in_child()) wake();
}

void ControlLink::run_there(const std::function<void()>& work) {
    guard_.check();
    std::promise<void> worked;
    const auto done = worked.get_future();
    post({{}, work, std::move(worked), {}});
    done.wait();
}

void ControlLink::listen_to_end(OnEnd on_end) {
    const std::lock_guard lock(mutex_);
    on_end_ = std::move(on_end);
    if (on_end_ && end_) on_end_(*end_);
}

void ControlLink::post(Post item) {
    {
        const std::lock_guard lock(mutex_);
        posts_.push_back(std::move(item));
    }
    wake();
}

void ControlLink::wake() noexcept {
    const std::uint64_t one = 1;
    // Fails only where the counter is already raised, which wakes as well.
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

// --- on the control thread ----------------------------------------------------------------------

void ControlLink::run() {
    while (!finished()) {
        wait();
        take_posts();
        if (socket_.is_open()) read_socket();
        perform(core_.advance_to(clock_now()));
        take_progress();
        write_socket();
    }
    feed(AgentLink::Closed{"the Worker has ended"});
    write_socket();
}

void ControlLink::wait() {
    std::optional<TimePoint> deadline = core_.next_deadline();
    if (ending_ && (!deadline || *ending_ < *deadline)) deadline = ending_;
    if (!unsent_.empty() && (!deadline || unsent_.front().deadline < *deadline))
        deadline = unsent_.front().deadline;
    timespec left{};
    if (deadline) {
        const auto rest = std::max(*deadline - clock_now(), Duration::zero());
        left.tv_sec = static_cast<time_t>(rest / std::chrono::seconds(1));
        left.tv_nsec = static_cast<long>((rest % std::chrono::seconds(1)).count());
    }
    const short want = static_cast<short>(socket_.has_unsent() ? POLLIN | POLLOUT : POLLIN);
    std::array<pollfd, 2> fds = {{{wake_.get(), POLLIN, 0}, {socket_.fd(), want, 0}}};
    ::ppoll(fds.data(), fds.size(), deadline ? &left : nullptr, nullptr);
}

void ControlLink::take_posts() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t drained = ::read(wake_.get(), &count, sizeof count);
    std::vector<Post> posts;
    {
        const std::lock_guard lock(mutex_);
        posts.swap(posts_);
    }
    for (Post& item : posts) {
        if (item.event) feed(*item.event);
        if (item.work) item.work();
        if (item.worked) item.worked->set_value();
        if (item.sent)
            unsent_.push_back(
                {socket_.queued(), clock_now() + send_patience, std::move(*item.sent)});
    }
}

// While the core is quiet nobody wakes this thread for a step; the end of the quiet time does.
void ControlLink::take_progress() {
    quiet_.store(core_.quiet());
    if (core_.quiet() && !ending_) return;
    const std::int64_t step = step_.exchange(no_step);
    if (step == no_step) return;
    feed(AgentLink::Stepped{step});
    if (ending_) feed(AgentLink::Ending{});
    quiet_.store(core_.quiet());
}

void ControlLink::read_socket() {
    const AgentSocket::Read read = socket_.receive();
    while (socket_.is_open()) {
        const auto message = socket_.next();
        if (!message) break;
        if (std::holds_alternative<rendezvous::ArenaReady>(*message))
            descriptor_ = socket_.take_descriptor();
        feed(AgentLink::Received{*message});
    }
    if (!socket_.is_open()) return;
    if (read == AgentSocket::Read::malformed || socket_.malformed())
        feed(AgentLink::Closed{"the agent of this node sent something that is not a message"});
    else if (read == AgentSocket::Read::closed)
        feed(AgentLink::Closed{"the agent of this node has closed the connection"});
}

void ControlLink::write_socket() {
    if (socket_.is_open() && !socket_.flush()) {
        read_socket();  // its last words, such as a refusal
        if (socket_.is_open())
            feed(AgentLink::Closed{"the agent of this node has closed the connection"});
    }
    const TimePoint now = unsent_.empty() ? TimePoint{} : clock_now();
    while (!unsent_.empty() && (!socket_.is_open() || socket_.sent() >= unsent_.front().until ||
                                unsent_.front().deadline <= now)) {
        unsent_.front().sent.set_value();
        unsent_.pop_front();
    }
}

bool ControlLink::finished() const {
    return ending_ && (!socket_.is_open() || !socket_.has_unsent() || *ending_ <= clock_now());
}

void ControlLink::feed(const AgentLink::Event& event) {
    perform(core_.step(event, clock_now()));
}

void ControlLink::perform(AgentLink::Actions actions) {
    for (auto& action : actions) std::visit([this](auto& one) { act(one); }, action);
}

void ControlLink::act(const AgentLink::Send& action) {
    if (socket_.is_open()) socket_.queue(action.message);
}

void ControlLink::act(AgentLink::Answer& action) {
    const auto* reply = std::get_if<rendezvous::ToWorker>(&action.outcome);
    // Before the thread that asked goes on, what the core sent ahead of the answer must be out.
    if (reply == nullptr && socket_.is_open()) (void)socket_.flush();
    std::promise<Outcome> promise;
    {
        const std::lock_guard lock(mutex_);
        const auto found = waiting_.find(action.id);
        if (found == waiting_.end()) return;
        promise = std::move(found->second);
        waiting_.erase(found);
    }
    if (reply == nullptr)
        promise.set_value(std::get<Failure>(std::move(action.outcome)));
    else if (std::holds_alternative<rendezvous::ArenaReady>(*reply))
        promise.set_value(Reply{*reply, std::move(descriptor_)});
    else
        promise.set_value(Reply{std::move(std::get<rendezvous::ToWorker>(action.outcome)), {}});
}

void ControlLink::act(const AgentLink::RaiseStop& action) {
    on_stop_(action.signal, action.deadline);
}

void ControlLink::act(const AgentLink::EndWaits& action) {
    const std::lock_guard lock(mutex_);
    end_ = action.failure;
    if (on_end_) on_end_(*end_);
}

void ControlLink::act(const AgentLink::Close&) {
    socket_.close();
}

}  // namespace ddrun::detail
