// Boost.JSON without its library: nothing more to install.
#include <boost/json/src.hpp>
