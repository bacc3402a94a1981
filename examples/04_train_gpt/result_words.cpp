#include "examples/04_train_gpt/result_words.hpp"

#include "examples/04_train_gpt/model/parameters.hpp"

#include <iomanip>
#include <sstream>

namespace train_gpt {
namespace {

// Beyond this part of the step, communication ends near-linear scaling.
constexpr auto worthwhile_reduce_share = 0.10;

std::string fixed(double value, int digits) {
    std::ostringstream words;
    words << std::fixed << std::setprecision(digits) << value;
    return words.str();
}

}  // namespace

std::string describe_model(int ranks, const RunIdentity& run) {
    std::ostringstream words;
    words << ranks << (ranks == 1 ? " rank, " : " ranks, ") << count_parameters(run.model)
          << " parameters, " << run.global_batch << " samples of " << run.model.context
          << " bytes per step";
    return words.str();
}

std::string describe_text(const std::filesystem::path& path, const Corpus& corpus) {
    std::ostringstream words;
    words << "text " << path.string() << ": " << corpus.training_tokens() << " bytes to learn, "
          << corpus.validation_tokens() << " to validate, " << corpus.vocabulary().size()
          << " different";
    return words.str();
}

std::string describe_speed(double samples_per_second, double reduce_share, int ranks) {
    std::string words = "speed: " + fixed(samples_per_second, 0) + " samples/s";
    if (ranks == 1) return words;
    words += "; all-reduce, waiting included: " + fixed(100.0 * reduce_share, 0) + " % of the time";
    if (reduce_share > worthwhile_reduce_share) {
        words += " (above 10 %, further ranks pay off less and less)";
    }
    return words;
}

std::string round_loss(double loss) {
    return fixed(loss, 3);
}

std::vector<std::string> printable_lines(std::string_view text) {
    std::vector<std::string> lines(1);
    for (const char byte : text) {
        if (byte == '\n') {
            lines.emplace_back();
        } else {
            lines.back().push_back(byte >= ' ' && byte <= '~' ? byte : ' ');
        }
    }
    return lines;
}

}  // namespace train_gpt
