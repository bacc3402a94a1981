#include "examples/04_train_gpt/setup_error.hpp"
#include "examples/04_train_gpt/training/checkpoint_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/train_gpt/temporary_folder.hpp"
#include "tests/unit/train_gpt/words.hpp"

#include <string>
#include <system_error>
#include <vector>

using namespace train_gpt;

namespace {

const RunIdentity run{
    {.vocabulary = 5, .context = 4, .layers = 1, .heads = 1, .width = 2}, 42, 8, 0xfeedbeefULL};

TrainingState state_of_step(std::uint64_t step) {
    TrainingState state = make_opening_state(run);
    state.step = step;
    state.opening_loss = 1.5;
    for (std::size_t i = 0; i < state.parameters.size(); ++i) {
        state.parameters[i] += static_cast<float>(step);
        state.moments.first[i] = static_cast<float>(i);
        state.moments.second[i] = static_cast<float>(i * i);
    }
    return state;
}

bool equal(const TrainingState& a, const TrainingState& b) {
    return a.step == b.step && a.opening_loss == b.opening_loss && a.parameters == b.parameters &&
           a.moments.first == b.moments.first && a.moments.second == b.moments.second;
}

const auto fail_on_report = [](const std::string& words) { FAIL(words); };

}  // namespace

TEST_CASE("a checkpoint gives back every bit of the state") {
    TemporaryFolder folder;
    CheckpointFolder checkpoints(folder.path() / "made" / "here");
    CHECK_FALSE(checkpoints.load_newest(run, fail_on_report));
    checkpoints.save(run, state_of_step(7));
    const auto loaded = checkpoints.load_newest(run, fail_on_report);
    REQUIRE(loaded);
    CHECK(equal(*loaded, state_of_step(7)));
}

TEST_CASE("the newest two checkpoints are kept") {
    TemporaryFolder folder;
    CheckpointFolder checkpoints(folder.path());
    for (const std::uint64_t step : {5, 10, 15, 100'000'000}) {
        checkpoints.save(run, state_of_step(step));
    }
    CHECK_FALSE(folder.has("checkpoint_00000005.gpt"));
    CHECK_FALSE(folder.has("checkpoint_00000010.gpt"));
    CHECK(folder.has("checkpoint_00000015.gpt"));
    CHECK(checkpoints.load_newest(run, fail_on_report)->step == 100'000'000);
}

TEST_CASE("a damaged checkpoint is named and set aside, and the one before it is taken") {
    TemporaryFolder folder;
    CheckpointFolder checkpoints(folder.path());
    checkpoints.save(run, state_of_step(5));
    checkpoints.save(run, state_of_step(10));
    const std::string newest = "checkpoint_00000010.gpt";
    const std::string whole = folder.read(newest);
    std::string damaged = whole;
    std::string reason;
    SECTION("one bit") {
        damaged[damaged.size() / 2] ^= 1;
        reason = "its checksum does not match";
    }
    SECTION("cut short") {
        damaged.resize(damaged.size() - 5);
        reason = "its checksum does not match";
    }
    SECTION("almost nothing left") {
        damaged.resize(9);
        reason = "it ends too early";
    }
    SECTION("empty") {
        damaged.clear();
        reason = "it is no checkpoint";
    }
    folder.write(newest, damaged);
    std::vector<std::string> reports;
    const auto loaded =
        checkpoints.load_newest(run, [&](const std::string& words) { reports.push_back(words); });
    REQUIRE(loaded);
    CHECK(equal(*loaded, state_of_step(5)));
    REQUIRE(reports.size() == 1);
    CHECK(contains(reports[0], newest));
    CHECK(contains(reports[0], reason));
    CHECK(folder.has(newest + ".damaged"));
    CHECK_FALSE(folder.has(newest));
}

TEST_CASE("with every checkpoint damaged a run begins anew") {
    TemporaryFolder folder;
    CheckpointFolder checkpoints(folder.path());
    folder.write("checkpoint_00000005.gpt", "nonsense");
    int reports = 0;
    CHECK_FALSE(checkpoints.load_newest(run, [&](const std::string&) { ++reports; }));
    CHECK(reports == 1);
}

TEST_CASE("a checkpoint of another run is refused, saying in what they differ") {
    TemporaryFolder folder;
    CheckpointFolder checkpoints(folder.path());
    checkpoints.save(run, state_of_step(5));
    RunIdentity other = run;
    std::string words;
    SECTION("model") {
        other.model.width = 4;
        words = "width 2 there, 4 here";
    }
    SECTION("batch") {
        other.global_batch = 16;
        words = "global batch 8 there, 16 here";
    }
    SECTION("text") {
        other.text_digest = 1;
        words = "text digest";
    }
    SECTION("seed") {
        other.seed = 1;
        words = "seed 42 there, 1 here";
    }
    const auto refusal =
        error_words<SetupError>([&] { checkpoints.load_newest(other, fail_on_report); });
    CHECK(contains(refusal, words));
    CHECK(contains(refusal, "checkpoint_00000005.gpt"));
    CHECK(contains(refusal, "--fresh"));
    CHECK(folder.has("checkpoint_00000005.gpt"));
}

TEST_CASE("what a killed writer left is removed, other files stay") {
    TemporaryFolder folder;
    folder.write("checkpoint_00000005.gpt.tmp", "half");
    folder.write("notes.tmp", "mine");
    folder.write("checkpoint_last.gpt", "mine too");
    CheckpointFolder checkpoints(folder.path());
    CHECK_FALSE(folder.has("checkpoint_00000005.gpt.tmp"));
    checkpoints.save(run, state_of_step(5));
    checkpoints.clear();
    CHECK_FALSE(folder.has("checkpoint_00000005.gpt"));
    CHECK(folder.read("notes.tmp") == "mine");
    CHECK(folder.read("checkpoint_last.gpt") == "mine too");
    CHECK_FALSE(checkpoints.load_newest(run, fail_on_report));
}

TEST_CASE("a checkpoint that cannot be written is an error that names the file") {
    TemporaryFolder folder;
    CheckpointFolder checkpoints(folder.path() / "gone");
    std::filesystem::remove_all(folder.path() / "gone");
    CHECK(contains(error_words([&] { checkpoints.save(run, state_of_step(5)); }),
                   "gone/checkpoint_00000005.gpt.tmp: No such file"));
}

TEST_CASE("the format stands: magic, version and checksum of a known state") {
    const std::string bytes = encode_checkpoint(run, make_opening_state(run));
    CHECK(bytes.substr(0, 12) == std::string("ddrunGPT\1\0\0\0", 12));
    CHECK(bytes.size() == 12 + 5 * 4 + 5 * 8 + 3 * 4 * count_parameters(run.model) + 8);
    std::string future = bytes;
    future[8] = 2;
    CHECK_THROWS_AS(decode_checkpoint(future), DamagedCheckpoint);
}
