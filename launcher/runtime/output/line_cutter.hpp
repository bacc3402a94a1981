#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace ddrun::launcher {

// How a unit of output ended.
enum class LineEnd {
    newline,          // its last byte is '\n' (perhaps after '\r')
    carriage_return,  // its last byte is '\r': a progress bar that will be overwritten
    none,             // a piece of a line over the limit, or the stream ended here
};

// Cuts the bytes of one stream into units that must stay whole, however the writes were split.
// Nothing is copied but an unfinished line between two reads. A '\r' as last byte is kept back
// until the next one tells "\r\n" from a progress bar. Pure; one thread.
class LineCutter {
  public:
    explicit LineCutter(std::size_t line_limit) : limit_(line_limit) {}
    void limit_to(std::size_t line_limit) { limit_ = line_limit; }  // from the next unit on

    // Calls emit(std::string_view unit, LineEnd) for each unit that is complete; views live until
    // it returns. No unit is longer than the limit plus its end.
    template <class Emit>
    void feed(std::string_view bytes, Emit&& emit);

    // The stream ended: what is left comes out.
    template <class Emit>
    void flush(Emit&& emit);

    [[nodiscard]] std::string_view unfinished() const { return carry_; }
    // The unfinished text overwrites a progress bar: programs that write "\r 10%" end no unit.
    [[nodiscard]] bool unfinished_is_progress() const {
        return !carry_.empty() && (last_end_ == LineEnd::carriage_return || carry_.back() == '\r');
    }

  private:
    // Finds the next end of a unit; every byte is looked at once for each of the two ends.
    struct Scanner {
        const char* end;
        const char* newline;
        const char* carriage_return;

        explicit Scanner(std::string_view bytes);
        // One past the end of the unit that starts at `at`, or nullptr when there is none yet.
        const char* next(const char* at, LineEnd& kind);
        [[nodiscard]] const char* find(const char* at, char byte) const;
    };

    template <class Emit>
    void take(std::string_view unit, LineEnd kind, Emit&& emit);
    template <class Emit>
    void cut(std::string_view& unit, std::size_t text, Emit&& emit);
    void clear_carry();

    std::size_t limit_;
    std::string carry_;
    LineEnd last_end_ = LineEnd::newline;
};

inline const char* LineCutter::Scanner::find(const char* at, char byte) const {
    const void* found = std::memchr(at, byte, static_cast<std::size_t>(end - at));
    return found ? static_cast<const char*>(found) : end;
}

inline LineCutter::Scanner::Scanner(std::string_view bytes)
    : end(bytes.data() + bytes.size()),
      newline(find(bytes.data(), '\n')),
      carriage_return(find(bytes.data(), '\r')) {}

inline const char* LineCutter::Scanner::next(const char* at, LineEnd& kind) {
    if (newline < at) newline = find(at, '\n');
    if (carriage_return < at) carriage_return = find(at, '\r');
    const bool undecided = carriage_return + 1 == end;
    if (carriage_return < newline && carriage_return + 1 != newline && !undecided) {
        kind = LineEnd::carriage_return;
        return carriage_return + 1;
    }
    kind = LineEnd::newline;
    return newline == end ? nullptr : newline + 1;
}

template <class Emit>
void LineCutter::feed(std::string_view bytes, Emit&& emit) {
    if (bytes.empty()) return;
    if (!carry_.empty() && carry_.back() == '\r' && bytes.front() != '\n') {
        emit(std::string_view(carry_), last_end_ = LineEnd::carriage_return);
        clear_carry();
    }
    Scanner scanner(bytes);
    const char* at = bytes.data();
    LineEnd kind{};
    while (at != scanner.end) {
        const char* stop = scanner.next(at, kind);
        if (!stop) break;
        const std::string_view unit(at, static_cast<std::size_t>(stop - at));
        if (carry_.empty() && unit.size() <= limit_) {
            emit(unit, last_end_ = kind);
        } else {
            take(unit, kind, emit);
        }
        at = stop;
    }
    if (at != scanner.end)
        take({at, static_cast<std::size_t>(scanner.end - at)}, LineEnd::none, emit);
}

template <class Emit>
void LineCutter::take(std::string_view unit, LineEnd kind, Emit&& emit) {
    // The end is not text, nor is a '\r' that may become one.
    const std::size_t mark = unit.ends_with("\r\n")                         ? 2
                             : kind != LineEnd::none || unit.back() == '\r' ? 1
                                                                            : 0;
    cut(unit, unit.size() - mark, emit);
    if (kind != LineEnd::none && carry_.empty()) {
        emit(unit, last_end_ = kind);
        return;
    }
    carry_.append(unit);
    if (kind == LineEnd::none) return;
    emit(std::string_view(carry_), last_end_ = kind);
    clear_carry();
}

// Emits pieces until the carried text and `text` bytes of `unit` fit into the limit.
template <class Emit>
void LineCutter::cut(std::string_view& unit, std::size_t text, Emit&& emit) {
    while (text > 0 && carry_.size() + text > limit_) {
        const std::size_t room = carry_.size() < limit_ ? limit_ - carry_.size() : 0;
        carry_.append(unit.substr(0, room));
        emit(std::string_view(carry_), last_end_ = LineEnd::none);
        clear_carry();
        unit.remove_prefix(room);
        text -= room;
    }
}

template <class Emit>
void LineCutter::flush(Emit&& emit) {
    if (carry_.empty()) return;
    const LineEnd kind = carry_.back() == '\r' ? LineEnd::carriage_return : LineEnd::none;
    emit(std::string_view(carry_), last_end_ = kind);
    clear_carry();
}

}  // namespace ddrun::launcher
