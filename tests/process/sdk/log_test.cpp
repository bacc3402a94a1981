#include "tests/process/sdk/ranks.hpp"
#include "tests/support/catch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cctype>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

using namespace ddrun;
using namespace ddrun::testing;
namespace fs = std::filesystem;

namespace {

// A directory of one test, gone at its end.
class Folder {
  public:
    Folder() {
        std::string name = (fs::temp_directory_path() / "ddrun-sdk-log-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    [[nodiscard]] const fs::path& path() const { return path_; }
    [[nodiscard]] std::string content(const std::string& file) const {
        std::ifstream in(path_ / file);
        return {std::istreambuf_iterator<char>(in), {}};
    }

  private:
    fs::path path_;
};

// "2025-03-01T12:00:00.123Z round 2 | words" to "<2>words", for each line.
std::string words_of(const std::string& text) {
    const std::string pattern = "dddd-dd-ddTdd:dd:dd.dddZ round ";
    std::istringstream lines(text);
    std::string words;
    for (std::string line; std::getline(lines, line);) {
        for (std::size_t i = 0; i < pattern.size() && i < line.size(); ++i)
            if (std::isdigit(static_cast<unsigned char>(line[i])) != 0) line[i] = 'd';
        const auto end = line.find(" | ");
        if (line.find(pattern) != 0 || end == std::string::npos) return "no stamp: " + line;
        words += "<" + line.substr(pattern.size(), end - pattern.size()) + ">" +
                 line.substr(end + 3) + "\n";
    }
    return words;
}

void redirect_stdout(const fs::path& file) {
    const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(out, STDOUT_FILENO);
}

}  // namespace

TEST_CASE("rank 0 prints and keeps main.log, every rank keeps its own file") {
    const Folder folder;
    FakeAgent agent(12);
    agent.environment.log_dir = folder.path();
    agent.environment.round = 3;
    const auto ranks = run_ranks(agent, [&](Worker& worker, std::ostream& say) {
        if (worker.rank() == 0) redirect_stdout(folder.path() / "out");
        worker.log().info("step ", 10, " loss ", 2.5);
        worker.log().status("50 %");  // no terminal: nothing
        if (worker.rank() != 1)
            worker.log().rank("rank ", worker.rank(), " of ", worker.world_size());
        say << worker.log().console_is_terminal() << worker.log().is_main();
    });
    CHECK(folder.content("out") == "step 10 loss 2.5\n");
    CHECK(words_of(folder.content("main.log")) == "<3>step 10 loss 2.5\n");
    CHECK(words_of(folder.content("rank_11.txt")) == "<3>rank 11 of 12\n");
    CHECK_FALSE(fs::exists(folder.path() / "rank_1.txt"));
    CHECK(ranks[0].said == "01");
    CHECK(ranks[1].said == "00");
}

TEST_CASE("a killed worker loses no line, and its successor appends") {
    const Folder folder;
    for (const int round : {1, 2}) {
        FakeAgent agent(1);
        agent.environment.round = round;
        run_ranks(agent, [&](Worker& worker, std::ostream&) {
            redirect_stdout("/dev/null");
            worker.log().to_directory(folder.path() / "made" / "here");
            worker.log().info("started");
            worker.log().rank("detail");
            ::raise(SIGKILL);
        });
    }
    CHECK(words_of(folder.content("made/here/main.log")) == "<1>started\n<2>started\n");
    CHECK(words_of(folder.content("made/here/rank_0.txt")) == "<1>detail\n<2>detail\n");
}

TEST_CASE("a log directory that cannot be is an error naming the path; a full disk is not") {
    const auto ranks = run_ranks(1, [](Worker& worker, std::ostream& say) {
        redirect_stdout("/dev/full");
        ::close(STDERR_FILENO);
        worker.log().info("this cannot be printed");
        try {
            worker.log().to_directory("/proc/nowhere");
        } catch (const Error& error) {
            say << error.exit_code() << ' ' << error.what();
        }
    });
    CHECK(ranks[0].said.find("2 cannot make the log directory /proc/nowhere: ") == 0);
}

TEST_CASE("a status line is overwritten by the next line, on a terminal only") {
    const Folder folder;
    FakeAgent agent(2);
    agent.environment.console_is_terminal = true;
    run_ranks(agent, [&](Worker& worker, std::ostream&) {
        if (worker.rank() == 0) redirect_stdout(folder.path() / "out");
        worker.log().status("1 %");
        worker.log().status("2 %");
        worker.log().info("done");
        worker.log().status("3 %");
    });
    CHECK(folder.content("out") == "\r\x1b[K1 %\r\x1b[K2 %\r\x1b[Kdone\n\r\x1b[K3 %\n");
}
