// The same for tests.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/precompiled/library.h"
