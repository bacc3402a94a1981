#include "rendezvous/transport/munge.hpp"

#include "tests/process/transport/loopback.hpp"
#include "tests/support/catch.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

// Two ends that trust each other through munge daemons of this test, each with its own socket.
using namespace ddrun::rendezvous;
using namespace ddrun::test;

namespace {

namespace files = std::filesystem;

std::string munged_path() {
    for (const char* path : {"/usr/sbin/munged", "/usr/local/sbin/munged", "/sbin/munged"}) {
        if (::access(path, X_OK) == 0) return path;
    }
    return {};
}

// A private daemon; `key` is the letter its key is made of.
class Munged {
  public:
    explicit Munged(char key) {
        std::string pattern = files::temp_directory_path() / "ddrun-munge-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
        files::permissions(folder_, files::perms(0711));
        const std::string key_file = folder_ + "/key";
        std::ofstream(key_file) << std::string(1024, key);
        files::permissions(key_file, files::perms(0600));
        std::vector<std::string> words = {munged_path(),
                                          "--foreground",
                                          "--force",
                                          "--key-file=" + key_file,
                                          "--socket=" + socket(),
                                          "--pid-file=" + folder_ + "/pid",
                                          "--log-file=" + folder_ + "/log",
                                          "--seed-file=" + folder_ + "/seed",
                                          "--num-threads=1"};
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ == 0) {
            (void)!std::freopen("/dev/null", "w", stderr);
            ::execv(arguments[0], arguments.data());
            ::_exit(127);
        }
        for (int i = 0; i < 500 && !munge_objection(socket()).empty(); ++i) ::usleep(10'000);
    }
    ~Munged() {
        ::kill(pid_, SIGTERM);
        ::waitpid(pid_, nullptr, 0);
        files::remove_all(folder_);
    }
    Munged(const Munged&) = delete;
    Munged& operator=(const Munged&) = delete;

    [[nodiscard]] std::string socket() const { return folder_ + "/socket"; }
    [[nodiscard]] Security security() const {
        Security security;
        security.mode = Security::Mode::munge;
        security.munge_socket = socket();
        return security;
    }

  private:
    std::string folder_;
    pid_t pid_ = -1;
};

bool is_missing(const Munged* munged) {
    const std::string objection =
        munged != nullptr ? munge_objection(munged->socket()) : "there is no munged";
    if (objection.empty()) return false;
    WARN("skipped: " << objection);
    return true;
}

std::unique_ptr<Munged> start(char key) {
    return munged_path().empty() ? nullptr : std::make_unique<Munged>(key);
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("munge hands a key over, once") {
    const auto munged = start('k');
    if (is_missing(munged.get())) return;
    const PreSharedKey secret = random_key();
    const std::string credential = encode_credential(secret, munged->socket());
    CHECK(credential.size() < max_credential_bytes);
    const PreSharedKey same = decode_credential(credential, munged->socket());
    CHECK(same.identity == secret.identity);
    CHECK(same.key == secret.key);
    CHECK_THROWS_AS(decode_credential(credential, munged->socket()), NotAuthorised);
    CHECK_THROWS_AS(decode_credential("MUNGE:nonsense:", munged->socket()), NotAuthorised);
}

TEST_CASE("two ends under one munge key talk") {
    const auto munged = start('k');
    if (is_missing(munged.get())) return;
    Loopback loopback;
    loopback.connect(munged->security(), munged->security());
    CHECK(loopback.failures() == "");
    CHECK(loopback.client_refusal == "");
    REQUIRE(loopback.client);
    REQUIRE(loopback.server);
    std::string heard;
    loopback.spawn(write_all(*loopback.client, "hello"));
    loopback.spawn(read_exactly(*loopback.server, 5, heard));
    loopback.run();
    CHECK(heard == "hello");
}

TEST_CASE("another munge key is refused in words on both sides") {
    const auto ours = start('o');
    const auto theirs = start('t');
    if (is_missing(ours.get()) || is_missing(theirs.get())) return;
    Loopback loopback;
    loopback.connect(theirs->security(), ours->security());
    CHECK(contains(loopback.server_refusal, "munge credential is refused"));
    CHECK(contains(loopback.client_refusal, "munge credential"));
    CHECK(loopback.seconds < 5);
}

TEST_CASE("munge on one side and a secret or nothing on the other: words on both sides") {
    const auto munged = start('k');
    if (is_missing(munged.get())) return;
    Security psk;
    Security plain;
    plain.mode = Security::Mode::plain;
    for (const Security& other : {psk, plain}) {
        Loopback at_munge;
        at_munge.connect(munged->security(), other);
        CHECK(contains(at_munge.server_refusal, "munge"));
        CHECK_FALSE(at_munge.client_refusal.empty());
    }
    Loopback with_secret;
    with_secret.connect(psk, munged->security());
    CHECK(contains(with_secret.server_refusal, "munge"));
    CHECK(contains(with_secret.client_refusal, "munge"));
}

TEST_CASE("a munge daemon that is gone is said, and may come back") {
    Security nowhere;
    nowhere.mode = Security::Mode::munge;
    nowhere.munge_socket = "/nonexistent/munge.socket";
    CHECK_FALSE(munge_objection(nowhere.munge_socket).empty());
    Loopback loopback;
    loopback.connect(nowhere, nowhere);
    CHECK(contains(loopback.failures(), "foreign"));
    CHECK(loopback.client == nullptr);
}
