#include "launcher/runtime/output/reader_watch.hpp"

namespace ddrun::launcher {

ReaderWatch::Change ReaderWatch::step(Event event, TimePoint now) {
    switch (event) {
        case Event::took: {
            const bool was_given_up = given_up();
            state_ = State::moving;
            return was_given_up ? Change::moves_again : Change::none;
        }
        case Event::refused:
            if (state_ == State::moving) {
                state_ = State::refusing;
                since_ = now;
            }
            return Change::none;
        case Event::failed:
            return give_up();
    }
    return Change::none;
}

ReaderWatch::Change ReaderWatch::advance_to(TimePoint now) {
    if (state_ != State::refusing || now < since_ + patience_) return Change::none;
    return give_up();
}

std::optional<TimePoint> ReaderWatch::next_deadline() const {
    if (state_ != State::refusing) return std::nullopt;
    return since_ + patience_;
}

ReaderWatch::Change ReaderWatch::give_up() {
    if (given_up()) return Change::none;
    state_ = State::given_up;
    return Change::gave_up;
}

}  // namespace ddrun::launcher
