#pragma once

namespace ddrun::launcher {

// Several lambdas as one visitor of a variant.
template <class... Visitors>
struct Overloaded : Visitors... {
    using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

}  // namespace ddrun::launcher
