#include "launcher/runtime/remote_job.hpp"

#include "launcher/runtime/refusal.hpp"
#include "rendezvous/platform/random.hpp"
#include "rendezvous/protocol/exit_status.hpp"
#include "rendezvous/transport/address.hpp"
#include "rendezvous/transport/secret.hpp"

namespace ddrun::launcher {
namespace {

std::optional<std::string> value_of(const Variables& environment, const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
}

std::string user_file(const Variables& environment) {
    return rendezvous::user_secret_file(value_of(environment, "XDG_CONFIG_HOME"),
                                        value_of(environment, "HOME"));
}

}  // namespace

std::optional<RemoteJob> decide_remote_job(const JobSpec& spec, const Variables& environment,
                                           std::vector<std::string>& warnings) {
    if (!has_several_nodes(spec)) {
        if (spec.status_listen) {
            warnings.emplace_back(
                "--status-listen changes nothing: one node serves no rendezvous; --status-file "
                "tells of its job");
        }
        return std::nullopt;
    }
    RemoteJob remote;
    try {
        rendezvous::SecretSources sources;
        sources.file = spec.secret_file;
        sources.variable = value_of(environment, "DDRUN_SECRET");
        sources.user_file = user_file(environment);
        sources.insecure = spec.insecure;
        remote.security = rendezvous::find_secret(sources).security;
        remote.local_address = rendezvous::choose_local_address(spec.local_addr, spec.interface);
    } catch (const rendezvous::NoSecret& error) {
        throw Refusal(exit_code::usage, error.what());
    } catch (const rendezvous::NoSuchAddress& error) {
        throw Refusal(exit_code::usage, error.what());
    }
    if (spec.insecure) {
        warnings.emplace_back(
            "--insecure: anybody who reaches the rendezvous can join the job and read it");
    }
    remote.obituary_token = detail::random_hex_128();
    return remote;
}

std::string make_user_secret(const Variables& environment) {
    const std::string path = user_file(environment);
    if (path.empty()) throw Refusal(exit_code::usage, "--make-secret: HOME is not set");
    const bool made = rendezvous::make_secret(path);
    return made ? "made " + path +
                      "; nodes that share this home directory find it, others need a "
                      "copy (mode 0600)\n"
                : path + " is there already and was left alone\n";
}

}  // namespace ddrun::launcher
