// web: the link to the daemon's page.
#include <iostream>

#include "client/cli/command.hpp"
#include "client/cli/net/api.hpp"

namespace pipewright::cli {

namespace {

int print_link(const EndpointFlags& flags) {
  const Endpoint endpoint = find_daemon(flags);
  const Api api(endpoint);
  api.pools();  // a wrong token is told here, not by the page
  const std::string link = api.page_link();
  if (link.empty()) {
    throw Error(
        "the daemon at " + endpoint.url() +
        " was built without its web page: install node and npm, run `npm ci` in client/web, "
        "configure and build again");
  }
  std::cout << link << '\n';
  return exit_ok;
}

}  // namespace

void add_web(Program& program) {
  CLI::App* command = program.add_command("web",
                                          "Print the link to the daemon's web page. It carries the "
                                          "token: give it to nobody who may not "
                                          "use the cluster",
                                          "xdg-open \"$(pipewright web)\"");
  auto flags = std::make_shared<EndpointFlags>();
  add_endpoint_flags(command, *flags);
  program.on(command, [flags] { return print_link(*flags); });
}

}  // namespace pipewright::cli
