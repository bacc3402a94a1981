#include "examples/04_train_gpt/training/loss_file.hpp"
#include "examples/04_train_gpt/setup_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/train_gpt/temporary_folder.hpp"

#include <string>

using namespace train_gpt;

TEST_CASE("a loss file has one line per step, from which the same float can be read back") {
    TemporaryFolder folder;
    const float loss = 1.0f / 3.0f;
    LossFile(folder.path() / "loss", 0).append(0, loss);
    const std::string line = folder.read("loss");
    CHECK(line == "0 0.333333343\n");
    CHECK(std::stof(line.substr(2)) == loss);
}

TEST_CASE("a resumed run cuts off what it will write again") {
    TemporaryFolder folder;
    SECTION("at a whole line") {
        folder.write("loss", "0 4.5\n1 4.25\n2 4\n3 3.75\n");
    }
    SECTION("with a line that a kill left unfinished") {
        folder.write("loss", "0 4.5\n1 4.25\n2 4\n3 3.");
    }
    {
        LossFile file(folder.path() / "loss", 2);
        CHECK(folder.read("loss") == "0 4.5\n1 4.25\n");
        file.append(2, 4.0f);
        file.append(3, 3.5f);
    }
    CHECK(folder.read("loss") == "0 4.5\n1 4.25\n2 4\n3 3.5\n");
}

TEST_CASE("an unfinished line is cut off even where no step is written again") {
    TemporaryFolder folder;
    folder.write("loss", "0 4.5\n1 4");
    LossFile(folder.path() / "loss", 9);
    CHECK(folder.read("loss") == "0 4.5\n");
}

TEST_CASE("a run from step 0 begins the loss file anew") {
    TemporaryFolder folder;
    folder.write("loss", "0 4.5\n1 4.25\n");
    LossFile(folder.path() / "loss", 0);
    CHECK(folder.read("loss").empty());
}

TEST_CASE("a file that is no loss curve is left alone") {
    TemporaryFolder folder;
    for (const std::string text : {"dear diary\n", "0 4.5\n1\n", "0 4.5 6\n", "\n"}) {
        CAPTURE(text);
        folder.write("loss", text);
        CHECK_THROWS_AS(LossFile(folder.path() / "loss", 5), SetupError);
        CHECK(folder.read("loss") == text);
    }
}
