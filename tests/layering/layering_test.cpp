#include "tests/layering/arrows.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;
using ddrun::layering::Folder;

namespace {

const fs::path root = DDRUN_SOURCE_DIR;

struct Source {
    std::string path;  // from the root
    std::string text;
    std::vector<std::string> quoted;  // #include "..."
    std::vector<std::string> angled;  // #include <...>
};

bool starts_with(const std::string& text, const std::string& prefix) {
    return text.rfind(prefix, 0) == 0;
}

std::string without_comments(const std::string& text) {
    static const std::regex comment(R"(//[^\n]*)");
    return std::regex_replace(text, comment, "");
}

Source read_source(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream buffer;
    buffer << in.rdbuf();
    Source source{fs::relative(file, root).string(), without_comments(buffer.str()), {}, {}};
    std::istringstream lines(source.text);
    static const std::regex include(R"(^\s*#\s*include\s*(["<])([^">]+)[">])");
    for (std::string line; std::getline(lines, line);) {
        std::smatch match;
        if (!std::regex_search(line, match, include)) continue;
        (match[1] == "\"" ? source.quoted : source.angled).push_back(match[2]);
    }
    return source;
}

std::vector<Source> sources_of_the_house() {
    std::vector<Source> found;
    for (const char* top : {"rendezvous", "launcher", "worker_sdk", "examples"}) {
        for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
            const auto extension = entry.path().extension().string();
            if (extension == ".cpp" || extension == ".hpp" || extension == ".cu" ||
                extension == ".cuh" || extension == ".h" || extension == ".c")
                found.push_back(read_source(entry.path()));
        }
    }
    return found;
}

// The most specific listed folder that holds `path`.
const Folder* folder_of(const std::string& path) {
    const Folder* best = nullptr;
    for (const auto& folder : ddrun::layering::folders())
        if (starts_with(path, folder.path + "/") &&
            (best == nullptr || folder.path.size() > best->path.size()))
            best = &folder;
    return best;
}

bool allowed_arrow(const Folder& from, const std::string& included) {
    const Folder* to = folder_of(included);
    if (to == nullptr) return false;
    return to == &from || std::find(from.may_include.begin(), from.may_include.end(), to->path) !=
                              from.may_include.end();
}

bool names_header(const std::string& header, const std::string& pattern) {
    return pattern.back() == '/' ? starts_with(header, pattern)
                                 : header == pattern || (starts_with(header, pattern) &&
                                                         (pattern == "cuda" || pattern == "nccl"));
}

}  // namespace

TEST_CASE("every source lies in a folder of the house") {
    for (const auto& source : sources_of_the_house()) {
        CAPTURE(source.path);
        CHECK(folder_of(source.path) != nullptr);
    }
}

TEST_CASE("arrows between our folders run down only") {
    for (const auto& source : sources_of_the_house()) {
        const Folder* from = folder_of(source.path);
        if (from == nullptr || from->path == "examples") continue;
        for (const auto& included : source.quoted) {
            CAPTURE(source.path, included);
            CHECK(allowed_arrow(*from, included));
        }
    }
}

TEST_CASE("pure folders see no clock, thread, socket, environment or chance") {
    for (const auto& source : sources_of_the_house()) {
        const Folder* from = folder_of(source.path);
        if (from == nullptr || !from->pure) continue;
        for (const auto& header : source.angled)
            for (const auto& impure : ddrun::layering::impure_headers()) {
                CAPTURE(source.path, header, impure);
                CHECK_FALSE(names_header(header, impure));
            }
        for (const auto& word : ddrun::layering::impure_words()) {
            CAPTURE(source.path, word);
            CHECK(source.text.find(word) == std::string::npos);
        }
    }
}

TEST_CASE("one folder owns each third-party dependency") {
    for (const auto& source : sources_of_the_house()) {
        const Folder* from = folder_of(source.path);
        if (from == nullptr) continue;
        for (const auto& header : source.angled)
            for (const auto& owner : ddrun::layering::folders())
                for (const auto& prefix : owner.owns) {
                    if (!starts_with(header, prefix)) continue;
                    CAPTURE(source.path, header);
                    const auto& mine = from->owns;
                    CHECK(std::any_of(mine.begin(), mine.end(), [&](const std::string& own) {
                        return starts_with(header, own);
                    }));
                }
    }
}

TEST_CASE("public SDK headers include std only, examples the public SDK only") {
    for (const auto& source : sources_of_the_house()) {
        CAPTURE(source.path);
        if (starts_with(source.path, "worker_sdk/include/")) {
            CHECK(source.quoted.empty());
            for (const auto& header : source.angled) {
                CAPTURE(header);
                CHECK((header.find('/') == std::string::npos || starts_with(header, "ddrun/")));
            }
        }
        if (starts_with(source.path, "examples/"))
            for (const auto& header : source.quoted) {
                CAPTURE(header);
                for (const char* ours : {"launcher/", "rendezvous/", "worker_sdk/"})
                    CHECK_FALSE(starts_with(header, ours));
            }
    }
}
