// The address at which a node of the deployment is reached.

import type { NodeLife } from '../domain/nodes/nodes.ts';

/** A node of the deployment with the same key, in one of its lives. */
export interface ReachableLife extends NodeLife {
  /** URL of its peer listener: `https://10.0.0.7:40123`, `http://127.0.0.1:40123` on loopback, `unix:/…/1` for a socket file. */
  readonly address: string;
}

const SOCKET = 'unix:';

/** The address of a listener on a socket file. */
export function socketAddress(path: string): string {
  return `${SOCKET}${path}`;
}

/** The socket file of an address, if it is one. */
export function socketOf(address: string): string | undefined {
  return address.startsWith(SOCKET) ? address.slice(SOCKET.length) : undefined;
}
