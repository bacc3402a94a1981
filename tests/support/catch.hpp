#pragma once

// One include for both generations of Catch2: v2.13 (Debian 12) and v3.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
