#include "rendezvous/server/state_file.hpp"

#include "rendezvous/platform/unique_fd.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace ddrun::rendezvous {
namespace {

namespace json = boost::json;

constexpr int format_version = 1;
constexpr std::size_t max_file_bytes = std::size_t{16} << 20;
constexpr auto last_write_patience = std::chrono::milliseconds(500);

std::string error_text(int number) {
    return std::generic_category().message(number);
}

std::string read_whole(int descriptor, const std::string& path) {
    std::string text;
    std::array<char, 65536> buffer;
    for (;;) {
        const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw UnusableStateFile(path + ": " + error_text(errno));
        if (got == 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(got));
        if (text.size() > max_file_bytes) throw UnusableStateFile(path + " is too large");
    }
}

bool write_whole(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(descriptor, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return ::fsync(descriptor) == 0;
}

// Words where it failed.
std::optional<std::string> replace(const std::string& path, const std::string& text) {
    const std::string temporary = path + ".new";
    const UniqueFd file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file && write_whole(file.get(), text) && ::rename(temporary.c_str(), path.c_str()) == 0) {
        return std::nullopt;
    }
    const std::string words = "cannot write " + path + ": " + error_text(errno);
    if (file) ::unlink(temporary.c_str());
    return words;
}

RememberedJob job_of(const json::object& object) {
    const auto text = [&](const char* name) {
        const json::string& value = object.at(name).as_string();
        return std::string(value.data(), value.size());
    };
    const auto number = [&](const char* name) { return object.at(name).to_number<int>(); };
    return {text("job_id"), text("incarnation"), number("round"), number("restarts_used")};
}

}  // namespace

std::vector<RememberedJob> jobs_to_remember(const std::vector<JobStatus>& jobs) {
    std::vector<RememberedJob> kept;
    for (const JobStatus& job : jobs) {
        if (job.round == 0 || job.state == "over") continue;
        kept.push_back({job.job_id, job.incarnation, job.round, job.restarts_used});
    }
    return kept;
}

std::string state_text(const std::vector<RememberedJob>& jobs) {
    json::array list;
    for (const RememberedJob& job : jobs) {
        list.push_back(json::object{{"job_id", job.job_id},
                                    {"incarnation", job.incarnation},
                                    {"round", job.round},
                                    {"restarts_used", job.restarts_used}});
    }
    return json::serialize(json::object{{"version", format_version}, {"jobs", std::move(list)}}) +
           "\n";
}

std::optional<std::vector<RememberedJob>> parse_state(std::string_view text) {
    try {
        const json::value whole = json::parse({text.data(), text.size()});
        const json::object& object = whole.as_object();
        if (object.at("version").to_number<int>() != format_version) return std::nullopt;
        std::vector<RememberedJob> jobs;
        for (const json::value& job : object.at("jobs").as_array()) {
            jobs.push_back(job_of(job.as_object()));
        }
        return jobs;
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

struct StateFile::Shared {
    std::string path;
    std::function<void(const std::string&)> say;
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<std::string> next;
    bool over = false;
    bool ended = false;
};

StateFile::StateFile(std::string path, std::function<void(const std::string&)> say)
    : shared_(std::make_shared<Shared>()) {
    shared_->path = std::move(path);
    shared_->say = std::move(say);
    std::thread(write_loop, shared_).detach();
}

StateFile::~StateFile() {
    std::unique_lock lock(shared_->mutex);
    shared_->over = true;
    shared_->changed.notify_all();
    shared_->changed.wait_for(lock, last_write_patience, [this] { return shared_->ended; });
}

std::vector<RememberedJob> StateFile::read() const {
    const std::string& path = shared_->path;
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file && errno == ENOENT) return {};
    if (!file) throw UnusableStateFile(path + ": " + error_text(errno));
    struct stat facts {};
    if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        throw UnusableStateFile(path + " is not a regular file");
    }
    const std::string text = read_whole(file.get(), path);
    auto jobs = text.empty() ? std::vector<RememberedJob>{} : parse_state(text);
    if (!jobs) {
        throw UnusableStateFile(path +
                                " was not written by this ddrun-rendezvous; remove it, or "
                                "name another --state-file");
    }
    return std::move(*jobs);
}

void StateFile::write(std::string text) {
    if (text == last_) return;
    last_ = text;
    const std::lock_guard lock(shared_->mutex);
    shared_->next = std::move(text);
    shared_->changed.notify_all();
}

void StateFile::write_loop(const std::shared_ptr<Shared>& shared) {
    std::optional<std::string> said;
    std::unique_lock lock(shared->mutex);
    for (;;) {
        shared->changed.wait(lock, [&] { return shared->over || shared->next; });
        if (!shared->next) break;
        const std::string text = std::move(*std::exchange(shared->next, std::nullopt));
        lock.unlock();
        const auto problem = replace(shared->path, text);
        if (problem && problem != said) shared->say(*problem);
        said = problem;
        lock.lock();
    }
    shared->ended = true;
    shared->changed.notify_all();
}

}  // namespace ddrun::rendezvous
