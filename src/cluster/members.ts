// The members of the deployment, as this node knows them: what the peer channel needs of them.

import type { InstanceDefinition } from '../domain/instances/instance.ts';

/** A node of the deployment with the same key, in one of its lives. */
export interface Member {
  /** Id of the node. */
  readonly node: string;
  readonly life: string;
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

export interface Members {
  /** The present life of this node. */
  readonly life: string;
  /** The member with this life; undefined for a life that has ended, and for one that the last read did not have. */
  find(life: string): Member | undefined;
  /** The other node that runs this program or reaches its container; undefined while there is none. */
  runsOn(instance: Pick<InstanceDefinition, 'nodeId' | 'serverId'>): Member | undefined;
  /** Whether it knows who runs the programs of any node. */
  readonly knowsPrograms?: boolean;
  /** Whether the member with this life is to get new sessions of clients that came here. Default: it is. */
  takesSessions?(life: string): boolean;
  /** Whether the member with this life does not answer this node, and its life goes on. Default: it answers. */
  isSilent?(life: string): boolean;
  /** Lives that may open the sessions that this node cannot: live ones, while it is cut off from the database, or one of the others is silent. */
  readonly openers?: readonly string[];
  /** Reads the members again, unless that was less than a second ago, or it is needed. Never rejects. */
  refresh(isNeeded?: boolean): Promise<void>;
  /** Whether the member with this life refuses connections of this node. Never rejects. */
  isRefused?(life: string): Promise<boolean>;
  /** Whether the database is away, for the member with this life. Undefined: this node cannot say. Never rejects. */
  isDatabaseAway?(life: string): Promise<boolean | undefined>;
  /**
   * Undefined, nearly always: this life goes on. A promise after a freeze, in which others may have ended it: resolves when the database has
   * answered, and this node goes on as `life`. NODE_UNAVAILABLE after 5 s.
   */
  certain?(): Promise<void> | undefined;
  /** Another member does not know this life: reads it again, and resolves or rejects as `certain`. */
  recheck?(): Promise<void>;
  /** This member refuses connections: it is asked at once whether it is still there. */
  suspect?(life: string): void;
  /** Calls the listener after each change of the members. One listener. */
  onChanged?(listener: () => void): void;
}
