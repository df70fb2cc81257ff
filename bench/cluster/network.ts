// Networks of their own for the nodes: a network namespace per node, all on one bridge. A cut is silent, as where packets are dropped:
// the node has the hardware address of nobody for the other end. Needs Linux, root and `ip` (iproute2).

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** A range for benchmarks (RFC 2544). */
const RANGE = '198.18.77';
const NOBODY = '02:00:00:00:00:01';

/** The two addresses of this side, so that one can be cut without the other. */
export const HOST = { clients: `${RANGE}.1`, database: `${RANGE}.2` } as const;

export interface NodeNetwork {
  readonly address: string;
  /** The words that start a program in it. */
  readonly under: readonly string[];
  /** From now on no packet to these addresses arrives. */
  cut(addresses: readonly string[]): Promise<void>;
  heal(): Promise<void>;
}

export interface Network {
  readonly nodes: readonly NodeNetwork[];
  close(): Promise<void>;
}

/** Undefined where networks can be made, else the reason. */
export async function whyNoNetworks(): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs Linux and root';
  const name = `sd-${randomBytes(3).toString('hex')}`;
  try {
    await ip('netns', 'add', name);
    await ip('netns', 'exec', name, 'true');
    return undefined;
  } catch (failed) {
    return `needs "ip netns": ${failed instanceof Error ? failed.message : failed}`;
  } finally {
    await ip('netns', 'del', name).catch(() => undefined);
  }
}

export async function openNetwork(count: number): Promise<Network> {
  const prefix = `sd${randomBytes(3).toString('hex')}`;
  const bridge = `${prefix}br`;
  const names = Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
  const close = async (): Promise<void> => {
    for (const name of names) await ip('netns', 'del', name).catch(() => undefined);
    await ip('link', 'del', bridge).catch(() => undefined);
  };
  try {
    await ip('link', 'add', bridge, 'type', 'bridge');
    for (const address of Object.values(HOST)) await ip('address', 'add', `${address}/24`, 'dev', bridge);
    await ip('link', 'set', bridge, 'up');
    const nodes: NodeNetwork[] = [];
    for (const [index, name] of names.entries()) nodes.push(await addNode(name, bridge, index));
    return { nodes, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function addNode(name: string, bridge: string, index: number): Promise<NodeNetwork> {
  const address = `${RANGE}.${10 + index}`;
  const outer = `${name}v`;
  await ip('netns', 'add', name);
  await ip('link', 'add', outer, 'master', bridge, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
  await ip('link', 'set', outer, 'up');
  await ip('-n', name, 'address', 'add', `${address}/24`, 'dev', 'eth0');
  for (const device of ['lo', 'eth0']) await ip('-n', name, 'link', 'set', device, 'up');
  const neighbours = new Set<string>();
  return {
    address,
    under: ['ip', 'netns', 'exec', name],
    cut: async (addresses) => {
      for (const other of addresses) {
        neighbours.add(other);
        await ip(
          '-n',
          name,
          'neighbour',
          'replace',
          other,
          'lladdr',
          NOBODY,
          'dev',
          'eth0',
          'nud',
          'permanent',
        );
      }
    },
    heal: async () => {
      for (const other of neighbours) await ip('-n', name, 'neighbour', 'del', other, 'dev', 'eth0');
      neighbours.clear();
    },
  };
}

async function ip(...words: readonly string[]): Promise<void> {
  await run('ip', [...words]);
}
