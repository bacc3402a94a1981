#include "launcher/runtime/status_file.hpp"

#include "launcher/runtime/refusal.hpp"
#include "rendezvous/platform/unique_fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>

namespace ddrun::launcher {
namespace {

constexpr auto last_write_patience = std::chrono::seconds(1);

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char byte : text) {
        const auto code = static_cast<unsigned char>(byte);
        if (byte == '"' || byte == '\\') {
            result += '\\';
            result += byte;
        } else if (code < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", code);
            result += escape;
        } else {
            result += byte;
        }
    }
    return result + "\"";
}

std::string member(const char* name, const std::string& value) {
    return quoted(name) + ": " + value;
}
std::string member(const char* name, int value) {
    return member(name, std::to_string(value));
}

std::string worker_json(const WorkerRecord& worker) {
    std::string text = "{" + member("rank", worker.rank) + ", " +
                       member("local_rank", worker.local_rank) + ", " + member("pid", worker.pid) +
                       ", " + member("running", worker.running ? "true" : "false");
    if (worker.status) {
        text += ", " + member("ended", quoted(worker.status->describe()));
    }
    return text + "}";
}

// A link is followed, so that what it names is replaced and not the link.
std::string behind_links(const std::string& path) {
    const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), ::free);
    return real ? std::string(real.get()) : path;
}

std::string temporary_beside(const std::string& path) {
    return path + ".tmp." + std::to_string(::getpid());
}

// A new file, never one that somebody else put there.
UniqueFd create(const std::string& temporary) {
    ::unlink(temporary.c_str());
    return UniqueFd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
}

void write_whole(const std::string& temporary, const std::string& path, const std::string& text) {
    const UniqueFd file = create(temporary);
    const bool whole =
        file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (!whole || ::rename(temporary.c_str(), path.c_str()) != 0) {
        ::unlink(temporary.c_str());
    }
}

}  // namespace

std::string to_json(const StatusReport& report) {
    std::string text =
        "{\n  " + member("job_id", quoted(report.job_id)) + ",\n  " +
        member("incarnation", quoted(report.incarnation)) + ",\n  " +
        member("state", quoted(report.state)) + ",\n  " + member("pid", report.pid) + ",\n  " +
        member("round", report.round) + ",\n  " + member("restarts_used", report.restarts_used) +
        ",\n  " + member("max_restarts", report.max_restarts) + ",\n  " +
        member("world_size", report.world_size) + ",\n  " + quoted("workers") + ": [";
    for (std::size_t i = 0; i < report.workers.size(); ++i) {
        text += (i == 0 ? "\n    " : ",\n    ") + worker_json(report.workers[i]);
    }
    text += report.workers.empty() ? "]" : "\n  ]";
    if (report.exit_code) {
        text += ",\n  " + member("exit_code", *report.exit_code) + ",\n  " +
                member("cause", quoted(report.cause));
    }
    return text + "\n}\n";
}

// The rename would put a plain file in the place of a device: as root, of /dev/null.
std::optional<std::string> status_file_problem(const std::string& path) {
    const std::string file = behind_links(path);
    struct stat facts {};
    if (::stat(file.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) {
        return path + " is not a regular file";
    }
    const std::string temporary = temporary_beside(file);
    if (!create(temporary)) {
        return "cannot create " + temporary + ": " + error_text(errno);
    }
    ::unlink(temporary.c_str());
    return std::nullopt;
}

StatusFile::StatusFile(const std::string& path) : shared_(std::make_shared<Shared>()) {
    shared_->path = behind_links(path);
    shared_->temporary = temporary_beside(shared_->path);
    std::thread(write_loop, shared_).detach();
}

StatusFile::~StatusFile() {
    std::unique_lock lock(shared_->mutex);
    shared_->over = true;
    shared_->changed.notify_all();
    shared_->changed.wait_for(lock, last_write_patience, [this] { return shared_->ended; });
}

void StatusFile::publish(std::string text) {
    if (text == last_) {
        return;
    }
    last_ = text;
    const std::lock_guard lock(shared_->mutex);
    shared_->next = std::move(text);
    shared_->changed.notify_all();
}

void StatusFile::write_loop(const std::shared_ptr<Shared>& shared) {
    std::unique_lock lock(shared->mutex);
    while (true) {
        shared->changed.wait(lock, [&] { return shared->next || shared->over; });
        if (!shared->next) {
            break;
        }
        const std::string text = *std::exchange(shared->next, std::nullopt);
        lock.unlock();
        write_whole(shared->temporary, shared->path, text);
        lock.lock();
    }
    shared->ended = true;
    shared->changed.notify_all();
}

}  // namespace ddrun::launcher
