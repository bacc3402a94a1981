#include "launcher/config/config.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>

// A job file from any bytes. Whatever is accepted must come back the same from --print-config.
using namespace ddrun;
using namespace ddrun::launcher;

namespace {

ConfigResult load(const std::vector<std::string>& words, const std::string& file) {
    return load_config(words, {}, [&](const std::string&, std::size_t) {
        return FileText{file, {}};
    });
}

void require(bool condition) {
    if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string file(reinterpret_cast<const char*>(data), size);
    const ConfigResult result = load({"--config=job.yaml"}, file);
    if (const auto* error = std::get_if<UsageError>(&result)) {
        require(error->text.starts_with("ddrun: ") && error->text.ends_with("\n"));
    }
    const auto* job = std::get_if<JobConfig>(&result);
    if (job == nullptr) return 0;
    const ConfigResult printed = load({"--config=job.yaml", "--print-config"}, file);
    const ConfigResult again = load({"--config=x"}, std::get<PrintAndExit>(printed).text);
    require(std::holds_alternative<JobConfig>(again));
    require(std::get<JobConfig>(again).spec == job->spec);
    return 0;
}
