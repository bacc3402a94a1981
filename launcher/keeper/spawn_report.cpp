#include "launcher/keeper/spawn_report.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

namespace ddrun::launcher::keeper {
namespace {

struct Record {
    SpawnStage stage = SpawnStage::exec;
    int error_number = 0;
    bool fatal = false;
    std::size_t path_bytes = 0;  // that follow
};

// A pipe takes no more than this in one piece.
constexpr std::size_t most_path_bytes = PIPE_BUF - sizeof(Record);

const char* name_of(SpawnStage stage) {
    switch (stage) {
        case SpawnStage::descriptors:
            return "descriptors";
        case SpawnStage::session:
            return "session";
        case SpawnStage::limits:
            return "limits";
        case SpawnStage::affinity:
            return "affinity";
        case SpawnStage::memory_policy:
            return "memory policy";
        case SpawnStage::exec:
            return "exec";
    }
    return "";
}

void take(const Record& record, std::string_view path, SpawnNews& news) {
    if (record.fatal) {
        news.failure = {name_of(record.stage), record.error_number, std::string(path)};
        return;
    }
    news.refused_binding = name_of(record.stage);
    news.refused_binding.append(": ").append(::strerrordesc_np(record.error_number));
}

}  // namespace

void report_refusal(int pipe, SpawnStage stage, int error_number, bool fatal,
                    std::string_view path) {
    path = path.substr(0, most_path_bytes);
    const Record record{stage, error_number, fatal, path.size()};
    std::array<char, PIPE_BUF> bytes;
    std::memcpy(bytes.data(), &record, sizeof(record));
    std::copy(path.begin(), path.end(), bytes.begin() + sizeof(record));
    // A keeper that is gone is not interested.
    [[maybe_unused]] const ssize_t written =
        ::write(pipe, bytes.data(), sizeof(record) + path.size());
}

SpawnNews read_spawn_report(int pipe) {
    SpawnNews news;
    std::array<char, 4 * PIPE_BUF> bytes;  // a child makes three remarks at most
    for (;;) {
        const ssize_t got = ::read(pipe, bytes.data(), bytes.size());
        if (got < 0 && errno == EAGAIN) return news;
        if (got <= 0) break;
        std::string_view rest(bytes.data(), static_cast<std::size_t>(got));
        while (rest.size() >= sizeof(Record)) {
            Record record;
            std::memcpy(&record, rest.data(), sizeof(record));
            rest.remove_prefix(sizeof(record));
            const std::string_view path = rest.substr(0, record.path_bytes);
            rest.remove_prefix(path.size());
            take(record, path, news);
        }
    }
    news.over = true;
    return news;
}

}  // namespace ddrun::launcher::keeper
