#include "examples/04_train_gpt/training/checkpoint_folder.hpp"

#include "examples/04_train_gpt/setup_error.hpp"
#include "examples/04_train_gpt/training/durable_file.hpp"
#include "examples/04_train_gpt/training/file_descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <vector>

namespace train_gpt {
namespace {

namespace fs = std::filesystem;

constexpr auto kept_checkpoints = std::size_t{2};
constexpr auto name_start = std::string_view("checkpoint_");
constexpr auto name_end = std::string_view(".gpt");

struct Entry {
    std::uint64_t step;
    fs::path path;
};

fs::path path_of(const fs::path& folder, std::uint64_t step) {
    std::string digits = std::to_string(step);
    digits.insert(0, 8 - std::min<std::size_t>(8, digits.size()), '0');  // sorted by ls, too
    return folder / (std::string(name_start) + digits + std::string(name_end));
}

std::optional<std::uint64_t> step_of(std::string_view name) {
    if (!name.starts_with(name_start) || !name.ends_with(name_end)) return std::nullopt;
    name.remove_prefix(name_start.size());
    name.remove_suffix(name_end.size());
    std::uint64_t step = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
    if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
    return step;
}

std::vector<Entry> list_newest_first(const fs::path& folder) {
    std::vector<Entry> entries;
    for (const auto& file : fs::directory_iterator(folder)) {
        const auto step = step_of(file.path().filename().string());
        if (step) entries.push_back({*step, file.path()});
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.step > b.step; });
    return entries;
}

std::string read_whole(const fs::path& path) {
    FileDescriptor file(path, O_RDONLY);
    std::string bytes(fs::file_size(path), '\0');
    std::size_t filled = 0;
    while (filled < bytes.size()) {
        const auto got = ::read(file.get(), bytes.data() + filled, bytes.size() - filled);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw_system_error("read", path);
        if (got == 0) break;
        filled += static_cast<std::size_t>(got);
    }
    bytes.resize(filled);
    return bytes;
}

void require_same_run(const fs::path& path, const RunIdentity& saved, const RunIdentity& run) {
    const auto difference = find_difference(saved, run);
    if (!difference) return;
    throw SetupError(path.string() + " belongs to another run (" + *difference +
                     "): use its settings, another --checkpoint-dir, or --fresh to delete it");
}

}  // namespace

CheckpointFolder::CheckpointFolder(fs::path folder) : folder_(std::move(folder)) {
    fs::create_directories(folder_);
    for (const auto& file : fs::directory_iterator(folder_)) {
        const std::string name = file.path().filename().string();
        if (name.starts_with(name_start) &&
            file.path().extension() == temporary_name("").string()) {
            fs::remove(file.path());
        }
    }
}

void CheckpointFolder::clear() {
    for (const Entry& entry : list_newest_first(folder_)) fs::remove(entry.path);
}

fs::path CheckpointFolder::save(const RunIdentity& run, const TrainingState& state) {
    const fs::path path = path_of(folder_, state.step);
    write_durably(path, encode_checkpoint(run, state));
    const auto entries = list_newest_first(folder_);
    for (std::size_t index = kept_checkpoints; index < entries.size(); ++index) {
        fs::remove(entries[index].path);
    }
    return path;
}

std::optional<TrainingState> CheckpointFolder::load_newest(
    const RunIdentity& run, const std::function<void(std::string)>& report) {
    for (const Entry& entry : list_newest_first(folder_)) {
        try {
            Checkpoint checkpoint = decode_checkpoint(read_whole(entry.path));
            require_same_run(entry.path, checkpoint.run, run);
            return std::move(checkpoint.state);
        } catch (const DamagedCheckpoint& damage) {
            // Out of the way: otherwise it would stay the newest of the two that are kept.
            fs::rename(entry.path, entry.path.string() + ".damaged");
            report(entry.path.string() + " is damaged (" + damage.what() +
                   ") and was set aside; trying the one before it");
        }
    }
    return std::nullopt;
}

}  // namespace train_gpt
