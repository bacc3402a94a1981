#include "rendezvous/server/arguments.hpp"
#include "tests/support/catch.hpp"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace ddrun::rendezvous;

namespace {

ArgumentsResult parsed(const std::vector<std::string>& words) {
    return parse_arguments(words, "0.1.0");
}
std::string listens_on(const std::vector<std::string>& words) {
    const auto result = parsed(words);
    REQUIRE(std::holds_alternative<Arguments>(result));
    const auto& endpoint = std::get<Arguments>(result).listen;
    return endpoint.address().to_string() + " " + std::to_string(endpoint.port());
}
std::string refusal(const std::vector<std::string>& words) {
    const auto result = parsed(words);
    REQUIRE(std::holds_alternative<UsageError>(result));
    return std::get<UsageError>(result).words;
}
bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}
std::string read_file(const std::string& name) {
    std::ifstream in(std::string(DDRUN_SOURCE_DIR) + "/" + name);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("the address to listen on is numeric, with or without a port, of either kind") {
    CHECK(listens_on({"--listen=10.9.0.1:4000"}) == "10.9.0.1 4000");
    CHECK(listens_on({"--listen", "10.9.0.1"}) == "10.9.0.1 29400");
    CHECK(listens_on({"--listen=[::]"}) == ":: 29400");
    CHECK(listens_on({"--listen=[fd00:9::1]:4000"}) == "fd00:9::1 4000");
    CHECK(listens_on({"--listen=fd00:9::1"}) == "fd00:9::1 29400");
    CHECK(listens_on({"--listen=0.0.0.0:0"}) == "0.0.0.0 0");
}

TEST_CASE("what is no address is refused with the value and a way out") {
    for (const std::string value : {"node7", "node7:29400", "10.9.0:1", "[::", "]:1", ":", ":80",
                                    "10.9.0.1:65536", "10.9.0.1:", "10.9.0.1:x", "[]:1", "[]"}) {
        CAPTURE(value);
        CHECK(has(refusal({"--listen=" + value}), "'" + value + "'"));
    }
    CHECK(has(refusal({"--listen="}), "empty"));
    CHECK(has(refusal({"--listen=::", "--status-listen=127.0.0.1"}), "no port"));
}

TEST_CASE("an address has to be chosen, and flags are written out") {
    CHECK(has(refusal({}), "--listen=ADDR[:PORT] is missing"));
    CHECK(has(refusal({"--listen=::", "--stat=x"}), "unknown argument '--stat=x'"));
    CHECK(has(refusal({"--listen=::", "--quiet=1"}), "takes no value"));
    CHECK(has(refusal({"--listen"}), "value is missing"));
    CHECK(has(refusal({"--listen=::", "more"}), "'more'"));
}

TEST_CASE("every flag arrives, in both spellings") {
    const auto result = parsed({"--listen=::", "--secret_file=s", "--state-file", "t",
                                "--status_listen=127.0.0.1:8080", "--insecure", "--quiet"});
    REQUIRE(std::holds_alternative<Arguments>(result));
    const auto& arguments = std::get<Arguments>(result);
    CHECK(arguments.secret_file == "s");
    CHECK(arguments.state_file == "t");
    CHECK(arguments.status_listen->port() == 8080);
    CHECK(arguments.insecure);
    CHECK(arguments.quiet);
}

TEST_CASE("help, man page and completions know every flag") {
    const auto help = std::get<PrintAndExit>(parsed({"--help"})).text;
    CHECK(std::get<PrintAndExit>(parsed({"--version"})).text == "ddrun-rendezvous 0.1.0\n");
    std::string man = read_file("packaging/man/ddrun-rendezvous.1");
    for (std::size_t at = 0; (at = man.find("\\-", at)) != std::string::npos;) man.erase(at, 1);
    const std::string bash = read_file("packaging/completions/ddrun-rendezvous.bash");
    const std::string zsh = read_file("packaging/completions/_ddrun-rendezvous");
    for (const Flag& flag : flags()) {
        const std::string name = std::string("--").append(flag.name);
        CAPTURE(name);
        CHECK(has(help, name));
        CHECK(has(man, name));
        CHECK(has(bash, name));
        CHECK(has(zsh, name));
    }
}
