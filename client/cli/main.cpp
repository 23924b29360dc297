// The `pipewright` program. Commands are listed in the order in which --help shows them.
#include "client/cli/command.hpp"

int main(int argc, char** argv) {
  using namespace pipewright::cli;
  Program program;
  for (const auto add :
       {add_plan,   add_validate, add_run,        add_replay, add_sample, add_up,     add_down,
        add_submit, add_watch,    add_top,        add_list,   add_show,   add_cancel, add_delete,
        add_wait,   add_log,      add_export,     add_plot,   add_web,    add_pools,  add_pool,
        add_token,  add_help,     add_completion, add_man}) {
    add(program);
  }
  return program.run(argc, argv);
}
