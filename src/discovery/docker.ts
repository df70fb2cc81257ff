// Docker: the engine that DOCKER_HOST names, else its default sockets, rootless ones included.

import { join } from 'node:path';
import { containerSources } from './containers.ts';
import type { Provider } from './provider.ts';

/** Row of the table. */
export const docker: Provider = {
  name: 'docker',
  sources: async (world) => {
    const { DOCKER_HOST: host, HOME: home, XDG_RUNTIME_DIR: runtime } = world.env;
    return containerSources(world, host ? [host] : [], [
      '/var/run/docker.sock',
      ...(runtime ? [join(runtime, 'docker.sock')] : []),
      ...(home ? [join(home, '.docker/run/docker.sock')] : []),
    ]);
  },
};
