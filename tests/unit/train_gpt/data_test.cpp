#include "examples/04_train_gpt/data/corpus.hpp"
#include "examples/04_train_gpt/data/text.hpp"
#include "examples/04_train_gpt/setup_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/train_gpt/temporary_folder.hpp"
#include "tests/unit/train_gpt/words.hpp"

#include <set>
#include <string>
#include <vector>

using namespace train_gpt;

namespace {

std::string make_text(std::size_t length) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text.push_back(static_cast<char>('a' + i * i % 23));
    return text;
}

}  // namespace

TEST_CASE("each epoch contains every window once, in another order") {
    for (const std::size_t tokens : {20u, 21u, 29u, 30u, 1000u, 4097u}) {
        CAPTURE(tokens);
        const SampleOrder order(5, tokens, 10);
        const std::uint64_t windows = order.windows_per_epoch();
        CHECK(windows == tokens / 10 - 1);
        std::set<std::vector<std::size_t>> orders;
        for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
            std::vector<std::size_t> sequence;
            for (std::uint64_t i = 0; i < windows; ++i) {
                const std::size_t first = order.first_token(epoch * windows + i);
                CHECK(first + 10 < tokens);
                sequence.push_back(first / 10);
            }
            CHECK(std::set<std::size_t>(sequence.begin(), sequence.end()).size() == windows);
            orders.insert(sequence);
        }
        if (windows > 5) CHECK(orders.size() == 3);
    }
}

TEST_CASE("a sample depends on seed and number only") {
    const SampleOrder order(5, 4000, 16);
    const SampleOrder same(5, 4000, 16);
    const SampleOrder other(6, 4000, 16);
    int different = 0;
    for (std::uint64_t sample = 700; sample-- > 0;) {
        CHECK(order.first_token(sample) == same.first_token(sample));
        different += order.first_token(sample) != other.first_token(sample) ? 1 : 0;
    }
    CHECK(different > 600);
}

TEST_CASE("any number of ranks takes the same samples, none twice") {
    const Corpus corpus(make_text(3000), 8, 1);
    const Batch whole = corpus.training_batch({48, 12});
    for (const int world_size : {1, 2, 3, 4, 6, 12}) {
        CAPTURE(world_size);
        std::vector<Token> tokens;
        for (int rank = 0; rank < world_size; ++rank) {
            SampleRange range = share_of(12, rank, world_size);
            CHECK(range.count == 12u / static_cast<unsigned>(world_size));
            range.first += 48;
            const Batch part = corpus.training_batch(range);
            tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
        }
        CHECK(tokens == whole.tokens);
    }
}

TEST_CASE("shares of what cannot be divided evenly still cover it") {
    std::uint64_t next = 0;
    for (int rank = 0; rank < 5; ++rank) {
        const SampleRange range = share_of(17, rank, 5);
        CHECK(range.first == next);
        next += range.count;
    }
    CHECK(next == 17);
}

TEST_CASE("targets are the inputs one byte later, and validation is apart from training") {
    const std::string text = make_text(1000);
    const Corpus corpus(text, 10, 1);
    CHECK(corpus.training_tokens() == 900);
    CHECK(corpus.validation_windows() == 9);
    const Batch batch = corpus.validation_batch({0, 9});
    std::string inputs;
    std::string targets;
    for (const Token token : batch.tokens) inputs.push_back(corpus.vocabulary().decode(token));
    for (const Token token : batch.targets) targets.push_back(corpus.vocabulary().decode(token));
    CHECK(inputs == text.substr(900, 90));
    CHECK(targets == text.substr(901, 90));
}

TEST_CASE("a text that is too short is refused with both sizes") {
    const auto words = error_words<SetupError>([] { Corpus(make_text(100), 64, 1); });
    CHECK(words == "the text has 100 bytes; a context of 64 needs at least 715");
    CHECK_THROWS_AS(Corpus("", 1, 1), SetupError);
}

TEST_CASE("the vocabulary holds each byte of the text once, zero and high bytes too") {
    const std::string text("b\xff\0ab", 5);
    const Vocabulary vocabulary(text);
    CHECK(vocabulary.size() == 4);
    std::string decoded;
    for (const Token token : vocabulary.encode(text)) decoded.push_back(vocabulary.decode(token));
    CHECK(decoded == text);
    CHECK(contains(error_words([&] { (void)vocabulary.encode("z"); }), "byte 122"));
}

TEST_CASE("a folder is read by name, without links and subfolders") {
    TemporaryFolder folder;
    folder.write("b", "second ");
    folder.write("a", "first ");
    folder.write("sub/c", "below");
    std::filesystem::create_symlink("a", folder.path() / "0-link");
    CHECK(read_text(folder.path()) == "first second ");
    CHECK(read_text(folder.path() / "0-link") == "first ");
}

TEST_CASE("a text that cannot be read is named with the reason") {
    CHECK_THROWS_WITH(read_text("/no/such/text"),
                      "cannot read the text /no/such/text: No such file or directory");
}
