#include "rendezvous/server/status_text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <map>
#include <string_view>

namespace ddrun::rendezvous {
namespace {

namespace json = boost::json;

double seconds(Duration time) {
    return static_cast<double>(
               std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) /
           1000;
}

json::object json_of(const NodeStatus& node) {
    json::object object{{"name", node.name},
                        {"address", node.address},
                        {"state", node.state},
                        {"slots", node.slots},
                        {"silent_for_s", seconds(node.silent_for)}};
    if (node.node_rank >= 0) object["node_rank"] = node.node_rank;
    if (node.first_rank >= 0) object["first_rank"] = node.first_rank;
    return object;
}

json::object json_of(const JobStatus& job) {
    json::array nodes;
    for (const NodeStatus& node : job.nodes) nodes.push_back(json_of(node));
    json::object object{{"job_id", job.job_id},
                        {"incarnation", job.incarnation},
                        {"state", job.state},
                        {"round", job.round},
                        {"world_size", job.world_size},
                        {"restarts_used", job.restarts_used},
                        {"max_restarts", job.max_restarts},
                        {"nodes", std::move(nodes)}};
    if (job.exit_code) object["exit_code"] = *job.exit_code;
    return object;
}

// Of a label's value.
std::string escaped(std::string_view text) {
    std::string result;
    for (const char byte : text) {
        if (byte == '\n') {
            result += "\\n";
            continue;
        }
        if (byte == '\\' || byte == '"') result += '\\';
        result += byte;
    }
    return result;
}

// One metric: its head, and then its samples.
class Metric {
  public:
    Metric(std::string& text, std::string_view name, std::string_view type, std::string_view help)
        : text_(text), name_(name) {
        text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
        text_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
    }
    void sample(std::size_t value) { text_ += name_ + " " + std::to_string(value) + "\n"; }
    void sample(const JobStatus& job, std::size_t value, const std::string& more = "") {
        text_ += name_ + "{job=\"" + escaped(job.job_id) + "\"" + more + "} " +
                 std::to_string(value) + "\n";
    }

  private:
    std::string& text_;
    std::string name_;
};

std::size_t count(int value) {
    return static_cast<std::size_t>(std::max(value, 0));
}

void nodes_by_state(std::string& text, const std::vector<JobStatus>& jobs) {
    Metric nodes(text, "ddrun_job_nodes", "gauge", "Nodes of the job in each state.");
    for (const JobStatus& job : jobs) {
        std::map<std::string, std::size_t> states;
        for (const NodeStatus& node : job.nodes) ++states[node.state];
        for (const auto& [state, number] : states) {
            nodes.sample(job, number, ",state=\"" + escaped(state) + "\"");
        }
    }
}

void metrics_of_jobs(std::string& text, const std::vector<JobStatus>& jobs) {
    const auto add = [&](std::string_view name, std::string_view type, std::string_view help,
                         int JobStatus::*value) {
        Metric metric(text, name, type, help);
        for (const JobStatus& job : jobs) metric.sample(job, count(job.*value));
    };
    add("ddrun_job_round", "gauge", "Round of the job; 0: none was granted.", &JobStatus::round);
    add("ddrun_job_world_size", "gauge", "Workers of the round.", &JobStatus::world_size);
    add("ddrun_job_restarts_used", "gauge", "Restarts charged so far.", &JobStatus::restarts_used);
    add("ddrun_job_max_restarts", "gauge", "Restarts the job may use.", &JobStatus::max_restarts);
    nodes_by_state(text, jobs);
}

struct Answer {
    std::string_view status;
    std::string_view type;
    std::string body;
};

Answer answer_to(StatusPage page, const ServerStatus& status) {
    constexpr std::string_view plain = "text/plain; charset=utf-8";
    switch (page) {
        case StatusPage::health:
            return {"200 OK", plain, "ok\n"};
        case StatusPage::status:
            return {"200 OK", "application/json", status_json(status)};
        case StatusPage::metrics:
            return {"200 OK", "text/plain; version=0.0.4; charset=utf-8", status_metrics(status)};
        case StatusPage::unknown:
            return {"404 Not Found", plain, "there are /healthz, /status and /metrics\n"};
        case StatusPage::not_allowed:
            return {"405 Method Not Allowed", plain, "this page can only be read: GET or HEAD\n"};
        case StatusPage::malformed:
            return {"400 Bad Request", plain, "this is not HTTP/1\n"};
        case StatusPage::too_large:
            return {"431 Request Header Fields Too Large", plain, "the request is too large\n"};
    }
    return {};
}

}  // namespace

std::string status_json(const ServerStatus& status) {
    json::array jobs;
    for (const JobStatus& job : status.jobs) jobs.push_back(json_of(job));
    return json::serialize(json::object{{"version", status.build},
                                        {"uptime_s", seconds(status.uptime)},
                                        {"connections", status.connections},
                                        {"strangers", status.strangers},
                                        {"turned_away", status.turned_away},
                                        {"jobs", std::move(jobs)}}) +
           "\n";
}

std::string status_metrics(const ServerStatus& status) {
    std::string text;
    Metric(text, "ddrun_connections", "gauge", "Connections that have proved who they are.")
        .sample(status.connections);
    Metric(text, "ddrun_strangers", "gauge", "Connections that have not, yet.")
        .sample(status.strangers);
    Metric(text, "ddrun_turned_away_total", "counter", "Connections turned away since the start.")
        .sample(status.turned_away);
    Metric(text, "ddrun_jobs", "gauge", "Jobs this server knows.").sample(status.jobs.size());
    metrics_of_jobs(text, status.jobs);
    return text;
}

std::string http_answer(const StatusQuestion& question, const ServerStatus& status) {
    const Answer answer = answer_to(question.page, status);
    std::string text = "HTTP/1.1 " + std::string(answer.status) +
                       "\r\nContent-Type: " + std::string(answer.type) +
                       "\r\nContent-Length: " + std::to_string(answer.body.size()) +
                       "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff"
                       "\r\nConnection: close\r\n";
    if (question.page == StatusPage::not_allowed) text += "Allow: GET, HEAD\r\n";
    text += "\r\n";
    return question.head_only ? text : text + answer.body;
}

}  // namespace ddrun::rendezvous
