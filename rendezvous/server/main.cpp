#include "rendezvous/platform/clock.hpp"
#include "rendezvous/platform/random.hpp"
#include "rendezvous/protocol/exit_status.hpp"
#include "rendezvous/server/arguments.hpp"
#include "rendezvous/server/server.hpp"
#include "rendezvous/server/service_manager.hpp"
#include "rendezvous/server/state_file.hpp"
#include "rendezvous/server/status_server.hpp"
#include "rendezvous/transport/address.hpp"
#include "rendezvous/transport/secret.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

using namespace ddrun;
using namespace ddrun::rendezvous;

namespace {

namespace asio = boost::asio;

constexpr auto state_every = std::chrono::seconds(1);
// As long as an agent keeps its workers without a server: the default of --rendezvous-grace.
constexpr auto nodes_come_back_within = std::chrono::seconds(60);

// A reader that takes nothing costs lines, never the time of the nodes.
void say(const std::string& words) {
    const std::string line = "ddrun-rendezvous: " + words + "\n";
    pollfd room{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&room, 1, 0) == 1) (void)!::write(STDERR_FILENO, line.data(), line.size());
}

std::optional<std::string> variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

FoundSecret secret_of(const Arguments& arguments) {
    SecretSources sources;
    sources.file = arguments.secret_file ? arguments.secret_file : variable("DDRUN_SECRET_FILE");
    sources.variable = variable("DDRUN_SECRET");
    sources.user_file = user_secret_file(variable("XDG_CONFIG_HOME"), variable("HOME"));
    sources.insecure = arguments.insecure;
    return find_secret(sources);
}

void use_all_descriptors() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
}

bool hangup_is_ignored() {
    struct sigaction current {};
    return ::sigaction(SIGHUP, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
}

// The address or port cannot be had.
struct CannotListen : std::runtime_error {
    using std::runtime_error::runtime_error;
};
template <typename Listen>
auto listen_at(const asio::ip::tcp::endpoint& endpoint, Listen listen) {
    try {
        return listen();
    } catch (const boost::system::system_error& error) {
        throw CannotListen("cannot listen on " + text_of(endpoint) + ": " + error.code().message());
    }
}

ServerSettings settings_of(const FoundSecret& secret, const std::vector<RememberedJob>& jobs) {
    ServerSettings settings;
    settings.security = secret.security;
    settings.say = say;
    settings.jobs.build = DDRUN_VERSION;
    settings.jobs.fresh_incarnation = detail::random_hex_128;
    settings.jobs.fresh_seed = detail::random_bits;
    for (const RememberedJob& job : jobs) {
        settings.jobs.awaited[job.job_id] = detail::now() + nodes_come_back_within;
    }
    return settings;
}

std::string greeting(const asio::ip::tcp::endpoint& at, const FoundSecret& secret) {
    std::string words = "listening on " + text_of(at);
    if (secret.security.mode == Security::Mode::plain) {
        return words + " without authentication or encryption (--insecure)";
    }
    return words + (secret.origin.empty() ? "" : ", secret from " + secret.origin);
}

// Everything this process owns, in the order in which it comes to be.
class Program {
  public:
    Program(const Arguments& arguments, const FoundSecret& secret) : arguments_(arguments) {
        if (arguments.state_file) state_.emplace(*arguments.state_file, say);
        if (state_) earlier_ = state_->read();
        server_.emplace(io_, settings_of(secret, earlier_));
        const auto at =
            listen_at(arguments.listen, [&] { return server_->listen(arguments.listen); });
        if (arguments.status_listen) serve_status(*arguments.status_listen);
        if (arguments.quiet) return;
        say(greeting(at, secret));
        if (page_) say("status page: http://" + text_of(page_->endpoint()) + "/status");
        if (!earlier_.empty()) {
            say("waiting for the nodes of " + std::to_string(earlier_.size()) +
                (earlier_.size() == 1 ? " job that was" : " jobs that were") + " running before (" +
                *arguments.state_file + ")");
        }
    }

    // Until a signal comes; that.
    int run() {
        int signal = 0;
        if (!hangup_is_ignored()) signals_.add(SIGHUP);  // nohup
        signals_.async_wait([&](const boost::system::error_code& error, int number) {
            if (error) return;
            signal = number;
            io_.stop();
        });
        if (state_) remember();
        const std::string manager = variable("NOTIFY_SOCKET").value_or("");
        notify_service_manager(manager, "READY=1");
        io_.run();
        notify_service_manager(manager, "STOPPING=1");
        server_->close();
        return signal;
    }

  private:
    void serve_status(const asio::ip::tcp::endpoint& endpoint) {
        listen_at(endpoint,
                  [&] { page_.emplace(io_, endpoint, [this] { return server_->status(); }); });
    }
    [[nodiscard]] static bool knows(const std::vector<JobStatus>& jobs, const std::string& id) {
        return std::any_of(jobs.begin(), jobs.end(),
                           [&](const JobStatus& job) { return job.job_id == id; });
    }
    void remember() {
        const auto jobs = server_->status().jobs;
        auto kept = jobs_to_remember(jobs);
        if (detail::now() < earlier_until_) {
            std::copy_if(earlier_.begin(), earlier_.end(), std::back_inserter(kept),
                         [&](const RememberedJob& job) { return !knows(jobs, job.job_id); });
        }
        state_->write(state_text(kept));
        timer_.expires_after(state_every);
        timer_.async_wait([this](const boost::system::error_code& error) {
            if (!error) remember();
        });
    }

    Arguments arguments_;
    asio::io_context io_{1};
    asio::signal_set signals_{io_, SIGTERM, SIGINT, SIGQUIT};
    asio::steady_timer timer_{io_};
    std::optional<StateFile> state_;
    std::vector<RememberedJob> earlier_;  // of the server before this one
    TimePoint earlier_until_ = detail::now() + nodes_come_back_within;
    std::optional<Server> server_;
    std::optional<StatusServer> page_;
};

int run(const std::vector<std::string>& words) {
    const ArgumentsResult result = parse_arguments(words, DDRUN_VERSION);
    if (const auto* text = std::get_if<PrintAndExit>(&result)) {
        const auto size = static_cast<ssize_t>(text->text.size());
        const bool printed = ::write(STDOUT_FILENO, text->text.data(), text->text.size()) == size;
        return printed ? exit_code::success : exit_code::system_refused;
    }
    if (const auto* error = std::get_if<UsageError>(&result)) {
        say(error->words);
        return exit_code::usage;
    }
    const auto& arguments = std::get<Arguments>(result);
    Program program(arguments, secret_of(arguments));
    const int signal = program.run();
    if (!arguments.quiet) say("stopped by " + signal_name(signal));
    return 128 + signal;
}

}  // namespace

int main(int argc, char** argv) {
    ::signal(SIGPIPE, SIG_IGN);
    use_all_descriptors();
    try {
        return run({argv + std::min(argc, 1), argv + argc});
    } catch (const NoSecret& problem) {
        say(problem.what());
        return exit_code::usage;
    } catch (const UnusableStateFile& problem) {
        say(std::string("--state-file: ") + problem.what());
        return exit_code::usage;
    } catch (const CannotListen& problem) {
        say(problem.what());
        return exit_code::system_refused;
    } catch (const std::system_error& error) {
        say(std::string("the system refused: ") + error.what());
        return exit_code::system_refused;
    } catch (const std::exception& error) {
        say(std::string("internal error: ") + error.what());
        return exit_code::internal_error;
    }
}
