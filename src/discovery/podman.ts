// Podman: the engine that CONTAINER_HOST names, else its default sockets, rootless ones included. It speaks Docker's API.

import { join } from 'node:path';
import { containerSources } from './containers.ts';
import type { Provider } from './provider.ts';

/** Row of the table. */
export const podman: Provider = {
  name: 'podman',
  sources: async (world) => {
    const { CONTAINER_HOST: host, XDG_RUNTIME_DIR: runtime } = world.env;
    return containerSources(world, host ? [host] : [], [
      '/run/podman/podman.sock',
      ...(runtime ? [join(runtime, 'podman/podman.sock')] : []),
    ]);
  },
};
