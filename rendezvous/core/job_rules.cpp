#include "rendezvous/core/job_rules.hpp"

namespace ddrun::rendezvous {

JobRules job_rules(const JobTerms& terms) {
    JobRules rules;
    rules.nodes = terms.max_nodes;
    rules.min_nodes = terms.min_nodes;
    rules.spares = terms.spares;
    rules.join_timeout = terms.join_timeout;
    rules.last_call = terms.last_call;
    rules.max_restarts = terms.max_restarts;
    rules.no_restart_on = terms.no_restart_on;
    rules.crash_loop = terms.crash_loop;
    rules.backoff_first = terms.restart_backoff;
    return rules;
}

}  // namespace ddrun::rendezvous
