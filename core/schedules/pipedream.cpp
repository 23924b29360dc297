#include "core/schedule/kind.hpp"
