#include "rendezvous/server/status_text.hpp"
#include "rendezvous/server/state_file.hpp"
#include "tests/support/catch.hpp"

#include <string>

using namespace ddrun::rendezvous;
using namespace std::chrono_literals;

namespace {

ServerStatus two_jobs() {
    ServerStatus status;
    status.build = "0.1.0";
    status.uptime = 90500ms;
    status.connections = 3;
    status.turned_away = 7;
    JobStatus running;
    running.job_id = "train \"1\"";
    running.incarnation = "cafe";
    running.state = "running";
    running.round = 2;
    running.world_size = 8;
    running.restarts_used = 1;
    running.max_restarts = 3;
    running.nodes = {{"n0", "10.9.0.1", 0, 0, 4, "running", 250ms},
                     {"n1", "10.9.0.2", 1, 4, 4, "silent", 2s},
                     {"n2", "10.9.0.3", -1, -1, 4, "spare", 0s}};
    JobStatus over;
    over.job_id = "other";
    over.incarnation = "beef";
    over.state = "over";
    over.round = 1;
    over.exit_code = 7;
    status.jobs = {running, over};
    return status;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}
StatusQuestion get(StatusPage page) {
    return {page, false};
}

}  // namespace

TEST_CASE("/status is JSON with all a person asks for") {
    CHECK(status_json(two_jobs()) ==
          R"({"version":"0.1.0","uptime_s":9.05E1,"connections":3,"strangers":0,"turned_away":7,)"
          R"("jobs":[{"job_id":"train \"1\"","incarnation":"cafe","state":"running","round":2,)"
          R"("world_size":8,"restarts_used":1,"max_restarts":3,"nodes":[)"
          R"({"name":"n0","address":"10.9.0.1","state":"running","slots":4,"silent_for_s":2.5E-1,)"
          R"("node_rank":0,"first_rank":0},)"
          R"({"name":"n1","address":"10.9.0.2","state":"silent","slots":4,"silent_for_s":2E0,)"
          R"("node_rank":1,"first_rank":4},)"
          R"({"name":"n2","address":"10.9.0.3","state":"spare","slots":4,"silent_for_s":0E0}]},)"
          R"({"job_id":"other","incarnation":"beef","state":"over","round":1,"world_size":0,)"
          R"("restarts_used":0,"max_restarts":0,"nodes":[],"exit_code":7}]})"
          "\n");
}

TEST_CASE("/metrics is Prometheus text, with the values of labels escaped") {
    const std::string text = status_metrics(two_jobs());
    CHECK(has(text, "# TYPE ddrun_turned_away_total counter\nddrun_turned_away_total 7\n"));
    CHECK(has(text, "\nddrun_jobs 2\n"));
    CHECK(has(text, "ddrun_job_round{job=\"train \\\"1\\\"\"} 2\n"));
    CHECK(has(text, "ddrun_job_world_size{job=\"other\"} 0\n"));
    CHECK(has(text, "ddrun_job_nodes{job=\"train \\\"1\\\"\",state=\"silent\"} 1\n"));
    for (const char* name : {"ddrun_connections", "ddrun_strangers", "ddrun_job_restarts_used",
                             "ddrun_job_max_restarts"}) {
        CHECK(has(text, std::string("# HELP ") + name + " "));
    }
}

TEST_CASE("each question has its HTTP answer, and the connection ends") {
    const ServerStatus status = two_jobs();
    const std::string health = http_answer(get(StatusPage::health), status);
    CHECK(health.rfind("HTTP/1.1 200 OK\r\n", 0) == 0);
    CHECK(has(health, "\r\nContent-Length: 3\r\n"));
    CHECK(has(health, "\r\nConnection: close\r\n"));
    CHECK(health.substr(health.size() - 7) == "\r\n\r\nok\n");
    CHECK(has(http_answer(get(StatusPage::status), status), "application/json"));
    CHECK(has(http_answer(get(StatusPage::metrics), status), "version=0.0.4"));
    CHECK(has(http_answer(get(StatusPage::unknown), status), " 404 Not Found\r\n"));
    CHECK(has(http_answer(get(StatusPage::not_allowed), status), "\r\nAllow: GET, HEAD\r\n"));
    CHECK(has(http_answer(get(StatusPage::malformed), status), " 400 Bad Request\r\n"));
    CHECK(has(http_answer(get(StatusPage::too_large), status), " 431 "));
    const std::string head = http_answer({StatusPage::health, true}, status);
    CHECK(head == health.substr(0, health.size() - 3));
}

TEST_CASE("a state file remembers what is running, and comes back as it went") {
    const auto jobs = jobs_to_remember(two_jobs().jobs);
    REQUIRE(jobs.size() == 1);
    CHECK(jobs.front() == RememberedJob{"train \"1\"", "cafe", 2, 1});
    CHECK(state_text(jobs) ==
          R"({"version":1,"jobs":[{"job_id":"train \"1\"","incarnation":"cafe","round":2,)"
          R"("restarts_used":1}]})"
          "\n");
    CHECK(parse_state(state_text(jobs)) == jobs);
    CHECK(parse_state(state_text({}))->empty());
}

TEST_CASE("another file is not taken for a state file") {
    for (const char* text : {"", "root:x:0:0", "{}", "[]", R"({"version":2,"jobs":[]})",
                             R"({"version":1})", R"({"version":1,"jobs":[{}]})",
                             R"({"version":1,"jobs":[{"job_id":1,"incarnation":"","round":1,)"
                             R"("restarts_used":0}]})"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_state(text));
    }
}
