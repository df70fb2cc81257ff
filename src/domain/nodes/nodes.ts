// The nodes of a deployment: as they are shown, and which of them runs a program.

import type { InstanceDefinition } from '../instances/instance.ts';

/** One life of a node. */
export interface ShownNode {
  readonly id: string;
  readonly life: string;
  /** URL for the other nodes; undefined for a node that no other reaches. */
  readonly address: string | undefined;
  readonly version: string;
  /** Version of the protocol between nodes; undefined for a node without others, and for one whose row cannot be read. */
  readonly protocol?: number | undefined;
  /** Start of the life, ISO 8601. */
  readonly since: string;
  /** Running programs. */
  readonly programs: number;
  /** Calls under way. */
  readonly calls: number;
  readonly isDraining: boolean;
  readonly state: (typeof NODE_STATES)[number];
  /** True for this node when others cannot connect to it, and so ended a life of it. */
  readonly isRefused?: boolean;
  /**
   * True for this node when one with a copy of its database asked it, and for an ended life whose node goes on under it,
   * with another database.
   */
  readonly hasOtherDatabase?: boolean;
}

/**
 * `slow`: it answers pings late. `silent`: it does not. `ended`: its life is over. `foreign`: it has another secret or
 * protocol, and is not a member. Source: ADR 146, 250.
 */
export const NODE_STATES = ['live', 'slow', 'silent', 'ended', 'foreign'] as const;

/** The nodes without those whose life is over, and those that are not members. */
export function memberNodes(nodes: readonly ShownNode[]): ShownNode[] {
  return nodes.filter(({ state }) => state !== 'ended' && state !== 'foreign');
}

/** The id of a node: that of its gateway, for a worker with the number of it. Ids of gateways have no slash. */
export function nodeOf(gateway: string, worker: number | undefined): string {
  return worker === undefined ? gateway : `${gateway}/${worker}`;
}

/** The id of the gateway that a node is, or is a worker of. */
export function gatewayIdOf(node: string): string {
  return node.split('/', 1)[0] ?? node;
}

/** The number of a worker of this gateway; undefined for any other node. */
export function workerOf(gateway: string, node: string): number | undefined {
  const [id, number] = node.split('/');
  return id === gateway && number !== undefined ? Number(number) : undefined;
}

/** Whether a node runs the programs that are stored for `nodeId`: the first worker runs those of its gateway. */
export function runsProgramsOf(node: string, nodeId: string | undefined): boolean {
  return nodeId !== undefined && (node === nodeId || node === nodeOf(nodeId, 1));
}

/**
 * The difference that makes a node foreign; undefined for other nodes. A row of another protocol may be signed
 * otherwise, so its secret is not known.
 */
export function foreignBy(own: ShownNode | undefined, node: ShownNode): 'secret' | 'protocol' | undefined {
  if (node.state !== 'foreign') return undefined;
  return node.protocol === undefined || node.protocol === own?.protocol ? 'secret' : 'protocol';
}

/** One line for each node that has another secret than the first one, which is this node. */
export function foreignNodes([own, ...others]: readonly ShownNode[]): string[] {
  const ids = new Set(others.filter((node) => foreignBy(own, node) === 'secret').map(({ id }) => id));
  return [...ids].map(
    (id) =>
      `the node "${id}" has another secret than this one, and is not a member: set the same GATEWAY_SECRET_KEY`,
  );
}

/** One line for each node that does not answer this one, and for this one. Without addresses: `/readyz` needs no credentials. */
export function silentNodes(nodes: readonly ShownNode[]): string[] {
  return nodes.flatMap(({ id, state, isRefused }) => {
    if (isRefused === true) return unreachableNode();
    return state === 'silent' ? `the node "${id}" does not answer this one` : [];
  });
}

/**
 * One line for each node that goes on with another database than the first one, which is this node, and for one
 * with a copy of its own.
 */
export function otherDatabases([own, ...others]: readonly ShownNode[]): string[] {
  const ids = new Set(others.flatMap(({ id, hasOtherDatabase }) => (hasOtherDatabase === true ? [id] : [])));
  const lines = [...ids].map(otherDatabase);
  return own?.hasOtherDatabase === true ? [...lines, COPIED_DATABASE] : lines;
}

export function otherDatabase(node: string): string {
  return `the node "${node}" continues a life that has ended in this database: it uses another database, of which this one is a copy`;
}

export const COPIED_DATABASE = 'a node that uses a copy of the database of this node sends requests to it';

/** The line of a node that others do not reach. */
export function unreachableNode(where = ''): string {
  return `other nodes cannot connect to this one${where}: set cluster.advertise to an address that they reach`;
}

/** One line for each other node with another version than the first one, which is this node. */
export function otherVersions([own, ...others]: readonly ShownNode[]): string[] {
  return others.flatMap((node) => {
    const { id, version, protocol, state } = node;
    if (foreignBy(own, node) === 'protocol')
      return `the node "${id}" has version ${version} and protocol ${protocol}, this one ${own?.version} and protocol ${own?.protocol}: it is not a member until all have the same version`;
    // Without a version its row cannot be read.
    if (state === 'ended' || version === '' || version === own?.version) return [];
    return `the node "${id}" has version ${version}, this one ${own?.version}`;
  });
}

/** The text in place of the id of a node for a program that any node may run. No node has this id. Source: ADR 168. */
export const ANY_NODE = 'any';

/** True for a program that any node may run. */
export function runsAnywhere({ nodeId }: { readonly nodeId?: string | undefined }): boolean {
  return nodeId === ANY_NODE;
}

/** `/srv/data`, `C:\\data`, `--root=/srv`. */
const ABSOLUTE_PATH = /^(?:--?[\w-]+=)?(?:\/(?!\/)|[A-Za-z]:[\\/])/;

/**
 * The warnings in the answer to the registration of a program of any node that names paths, which other machines may
 * not have. They name no values, which may be secret.
 */
export function pathWarnings({
  nodeId,
  args,
  env,
}: Pick<InstanceDefinition, 'nodeId' | 'args' | 'env'>): string[] {
  if (!runsAnywhere({ nodeId })) return [];
  const places = [
    ...args.flatMap((word, index) => (ABSOLUTE_PATH.test(word) ? [`argument ${index + 1}`] : [])),
    ...Object.keys(env).filter((name) => ABSOLUTE_PATH.test(env[name] ?? '')),
  ];
  if (places.length === 0) return [];
  return [
    `any node may run it, and it names absolute paths (${places.join(', ')}): give the id of a node as "node" if only that machine has them`,
  ];
}

/** One start of a node. */
export interface NodeLife {
  /** The id of the node. */
  readonly node: string;
  readonly life: string;
}

/** The events of a program that was started. */
export interface ProgramListener {
  /** The program serves. */
  onStarted(): void;
  /**
   * The processes are gone, or could not be started; the program is started again after a pause. `isRefused`: this
   * node must not start it.
   */
  onEnded(reason: string, isRefused: boolean): void;
}

/**
 * The programs that any node may run, as the cluster sees them, each by the server id of its instance. The cluster
 * decides where they run, the gateway runs them.
 */
export interface ProgramHost {
  /** Whether programs of the former process of this node may still run on this machine. */
  readonly mayFormerRun: boolean;
  /** The registered ones that can be started here, and those that are still being stopped, with the time of their last change. */
  list(): readonly { readonly program: string; readonly changedAt: string }[];
  /** Calls the listener when a program was registered or changed. One listener. */
  onChanged(listener: () => void): void;
  start(program: string, listener: ProgramListener): void;
  /** Calls in flight may finish. Resolves when no process of it is left. Never rejects. */
  stop(program: string): Promise<void>;
  /** Stops the program without waiting for calls in flight. See `stop`. */
  kill(program: string): Promise<void>;
  /**
   * Lets the programs run until this moment of the monotonic clock, in ms: their reaper kills them then, whatever
   * this process does.
   */
  lease(untilMs: number): void;
  /** Says where a program runs now; undefined: nowhere. `why`: the known reason. */
  place(program: string, where: NodeLife | undefined, why: string | undefined): void;
}
