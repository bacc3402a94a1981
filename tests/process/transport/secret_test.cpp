#include "rendezvous/transport/secret.hpp"

#include "tests/support/catch.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

// Where the secret comes from, with real files.
using namespace ddrun::rendezvous;

namespace {

const std::string good = "sixteen letters!";

class Folder {
  public:
    Folder() {
        std::string pattern = std::filesystem::temp_directory_path() / "ddrun-secret-XXXXXX";
        path_ = ::mkdtemp(pattern.data());
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    [[nodiscard]] std::string file(const std::string& text, mode_t mode = 0600) const {
        const std::string path = path_ + "/secret";
        std::ofstream(path) << text;
        ::chmod(path.c_str(), mode);
        return path;
    }
    [[nodiscard]] std::string operator/(const std::string& name) const {
        return path_ + "/" + name;
    }

  private:
    std::string path_;
};

SecretSources nothing() {
    SecretSources sources;
    sources.munge_objection = [](const std::string&) { return "it is not there"; };
    return sources;
}

std::string refusal(const SecretSources& sources) {
    try {
        (void)find_secret(sources);
    } catch (const NoSecret& error) {
        return error.what();
    }
    return {};
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the first source that is there counts: file, variable, munge, the user's file") {
    const Folder folder;
    SecretSources sources = nothing();
    sources.user_file = folder.file(good + "\n");
    CHECK(find_secret(sources).origin == sources.user_file);
    CHECK(find_secret(sources).security.key == key_of(good));

    sources.munge_objection = [](const std::string& socket) {
        return socket == "/run/m" ? "" : "wrong socket";
    };
    sources.munge_socket = "/run/m";
    CHECK(find_secret(sources).security.mode == Security::Mode::munge);
    CHECK(find_secret(sources).security.munge_socket == "/run/m");

    sources.variable = good + "2";
    CHECK(find_secret(sources).origin == "DDRUN_SECRET");
    CHECK(find_secret(sources).security.key == key_of(good + "2"));

    const Folder other;
    sources.file = other.file(good + "3\r\n");
    CHECK(find_secret(sources).origin == "--secret-file");
    CHECK(find_secret(sources).security.key == key_of(good + "3"));

    sources.insecure = true;
    CHECK(find_secret(sources).security.mode == Security::Mode::plain);
}

TEST_CASE("without any the ways out are named") {
    const std::string words = refusal(nothing());
    for (const char* way : {"--make-secret", "DDRUN_SECRET", "--secret-file", "--insecure", "munge",
                            "it is not there"}) {
        CHECK(contains(words, way));
    }
}

TEST_CASE("a source that is there and cannot be used is an error that does not show it") {
    const Folder folder;
    SecretSources sources = nothing();
    sources.variable = "too short";
    CHECK(contains(refusal(sources), "9 characters"));
    CHECK_FALSE(contains(refusal(sources), "too short"));
    sources.variable = std::string(5000, 'x');
    CHECK(contains(refusal(sources), "longer"));
    sources.file = folder / "nosuch";
    CHECK(contains(refusal(sources), "there is no file"));
    sources.file = folder / ".";
    CHECK(contains(refusal(sources), "not a file"));
    sources.file = folder.file("short\n");
    CHECK(contains(refusal(sources), "5 characters"));
}

TEST_CASE("a user's file that others can read is refused; a named one is used with a warning") {
    const Folder folder;
    SecretSources sources = nothing();
    sources.user_file = folder.file(good, 0640);
    CHECK(contains(refusal(sources), "chmod 600"));
    SecretSources named = nothing();
    named.file = sources.user_file;
    CHECK(contains(find_secret(named).warning, "other users"));
    CHECK(find_secret(named).security.key == key_of(good));
}

TEST_CASE("keys differ with the secret and do not contain it") {
    CHECK(key_of(good) == key_of(good));
    CHECK(key_of(good) != key_of(good + " "));
}

TEST_CASE("a secret is made once, for its user only, and never overwritten") {
    const Folder folder;
    const std::string path = folder / "config/ddrun/secret";
    REQUIRE(make_secret(path));
    struct stat facts {};
    REQUIRE(::stat(path.c_str(), &facts) == 0);
    CHECK((facts.st_mode & 07777) == 0600);
    SecretSources sources = nothing();
    sources.user_file = path;
    const Key key = find_secret(sources).security.key;
    CHECK_FALSE(make_secret(path));
    CHECK(find_secret(sources).security.key == key);
}

TEST_CASE("the user's file is below XDG_CONFIG_HOME or the home directory") {
    CHECK(user_secret_file("/c", "/h") == "/c/ddrun/secret");
    CHECK(user_secret_file({}, "/h") == "/h/.config/ddrun/secret");
    CHECK(user_secret_file("relative", "/h") == "/h/.config/ddrun/secret");
    CHECK(user_secret_file({}, {}) == "");
}
