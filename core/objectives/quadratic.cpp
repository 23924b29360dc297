#include "core/objectives/objective.hpp"
