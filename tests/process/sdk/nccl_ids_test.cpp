#include "tests/process/sdk/ranks.hpp"
#include "tests/support/catch.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <set>

using namespace ddrun;
using namespace ddrun::testing;
using namespace std::chrono_literals;

namespace {

std::string text_of(const NcclUniqueId& id) {
    return {id.bytes, sizeof id.bytes};
}

void say_ids(Worker& worker, std::ostream& say) {
    for (const auto& id : worker.nccl_unique_ids()) {
        const std::string text = text_of(id);
        say << std::hash<std::string>()(text) << ' ';
    }
}

// Looked for in a child: this process must not load it.
bool nccl_is_here() {
    FakeAgent agent(1);
    const auto ranks = agent.run([](std::ostream& say) {
        say << (::dlopen("libnccl.so.2", RTLD_NOW) != nullptr ? "here" : ::dlerror());
    });
    if (ranks[0].said != "here") WARN("skipped: " << ranks[0].said);
    return ranks[0].said == "here";
}

}  // namespace

TEST_CASE("ranks get one unique id of the real NCCL, and another at each call") {
    if (!nccl_is_here()) return;
    const auto ranks = run_ranks(4, [](Worker& worker, std::ostream& say) {
        say_ids(worker, say);
        say_ids(worker, say);
        (void)worker.nccl_unique_ids("pipeline");
    });
    for (const auto& rank : ranks) CHECK(rank.said == ranks[0].said);
    std::istringstream words(ranks[0].said);
    std::string first;
    std::string second;
    words >> first >> second;
    CHECK(first != second);
    CHECK(second.size() > 4);
}

TEST_CASE("300 ranks get three ids, made by the first rank of each block") {
    const auto ranks = run_ranks(300, [](Worker& worker, std::ostream& say) {
        ::setenv("DDRUN_NCCL_LIBRARY", DDRUN_OTHER_NCCL, 1);
        for (const auto& id : worker.nccl_unique_ids()) say << id.bytes << ' ';
        say << "| " << ::getpid();
    });
    std::string expected;
    for (const std::size_t maker : {0u, 100u, 200u})
        expected += ranks[maker].said.substr(ranks[maker].said.find('|') + 2) + ".1 ";
    for (const auto& rank : ranks) REQUIRE(rank.said.substr(0, rank.said.find('|')) == expected);
}

TEST_CASE("an NCCL of another version is refused before any communicator, naming both") {
    if (!nccl_is_here()) return;
    const auto ranks = run_ranks(2, [](Worker& worker, std::ostream&) {
        if (worker.rank() == 1) ::setenv("DDRUN_NCCL_LIBRARY", DDRUN_OTHER_NCCL, 1);
        (void)worker.nccl_unique_ids();
    });
    CHECK(ranks[0].exited_with(0));
    CHECK(ranks[1].exited_with(77));
    CHECK(ranks[1].said.find("refused: rank 1 has NCCL 2.18.5, rank 0 has 2.") == 0);
}

TEST_CASE("where NCCL is missing, or is something else, the words say what to set") {
    for (const auto& [path, words] :
         {std::pair("/no/such/libnccl.so", "cannot open shared object file"),
          std::pair(DDRUN_NOT_NCCL, "has no ncclGetUniqueId: it is not NCCL 2.14 or newer")}) {
        const auto ranks = run_ranks(1, [&](Worker& worker, std::ostream&) {
            ::setenv("DDRUN_NCCL_LIBRARY", path, 1);
            (void)worker.nccl_unique_ids();
        });
        CHECK(ranks[0].exited_with(2));
        CHECK(ranks[0].said.find(words) != std::string::npos);
        CHECK(ranks[0].said.find("DDRUN_NCCL_LIBRARY") != std::string::npos);
    }
}

TEST_CASE("a maker that never comes is a time-out that names the key, not a hang") {
    const auto ranks = run_ranks(2, [](Worker& worker, std::ostream&) {
        ::setenv("DDRUN_NCCL_LIBRARY", DDRUN_OTHER_NCCL, 1);
        if (worker.rank() == 1) (void)worker.nccl_unique_ids("world", 50ms);
    });
    CHECK(ranks[1].said.find("timed_out: store get 'ddrun.nccl/world/0/0'") == 0);
}

TEST_CASE("alone, an id is made without an agent") {
    ::setenv("DDRUN_NCCL_LIBRARY", DDRUN_OTHER_NCCL, 1);
    Worker alone = Worker::from_environment();
    CHECK(alone.nccl_unique_ids().size() == 1);
    ::unsetenv("DDRUN_NCCL_LIBRARY");
}
