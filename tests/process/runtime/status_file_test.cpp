#include "launcher/runtime/status_file.hpp"
#include "tests/support/catch.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace ddrun;
using namespace ddrun::launcher;

namespace {

std::string text_of(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("the status file has the newest text once it is closed, and no temporary file is left") {
    std::string folder = "/tmp/ddrun_status_XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    const std::string path = folder + "/status.json";
    {
        StatusFile file(path);
        for (int i = 0; i < 100; ++i) file.publish("text " + std::to_string(i) + "\n");
    }
    CHECK(text_of(path) == "text 99\n");
    const std::filesystem::directory_iterator files(folder);
    CHECK(std::distance(begin(files), end(files)) == 1);
    std::filesystem::remove_all(folder);
}

TEST_CASE("a status file that cannot be written hurts nobody") {
    StatusFile file("/proc/no/such/place");
    file.publish("text\n");
}

TEST_CASE("the status is one JSON object; odd characters are escaped") {
    StatusReport report;
    report.job_id = "a\"b\\c\n";
    report.state = "running";
    report.workers.push_back({});
    report.workers.back().status = ExitStatus{ExitStatus::Kind::exited, 3, false};
    const std::string text = to_json(report);
    CHECK(text.find("\"a\\\"b\\\\c\\u000a\"") != std::string::npos);
    CHECK(text.find("\"ended\": \"exit code 3\"") != std::string::npos);
    CHECK(text.front() == '{');
}
