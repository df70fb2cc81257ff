// What a fault costs the nodes that go on: their processor time, memory and the delays of their event loops, and with `--profile` a profile of each.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openInspector } from '../inspector.ts';
import type { Deployment, Node } from './deployment.ts';
import type { NodeLoad } from './herd-verdicts.ts';

const SAMPLE_MS = 250;

/** Settings of nodes that can be profiled. */
export const PROFILED = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

interface Watched {
  readonly node: Node;
  readonly beforeBytes: number;
  readonly beforeMs: number;
  mostBytes: number;
  readonly endProfile: (() => Promise<unknown>) | undefined;
}

/** The live heap of a node that was started with PROFILED. */
export async function heapOf(node: Node): Promise<number> {
  const inspector = await openInspector(node.output());
  return inspector.heapBytes().finally(() => inspector.close());
}

/** `profiles`: a folder for them. The function ends the watch, once. */
export async function watchLoads(
  nodes: readonly Node[],
  deployment: Pick<Deployment, 'admin'>,
  profiles: string | undefined,
): Promise<() => Promise<NodeLoad[]>> {
  const admin = await deployment.admin();
  const watched = await Promise.all(
    nodes.map(async (node): Promise<Watched> => {
      const inspector = profiles === undefined ? undefined : await openInspector(node.output());
      await inspector?.startProfile();
      await node.lagMs(admin); // from now on
      const { memoryBytes, cpuMs } = node;
      const endProfile = inspector && (() => inspector.endProfile().finally(() => inspector.close()));
      return { node, beforeBytes: memoryBytes, beforeMs: cpuMs, mostBytes: memoryBytes, endProfile };
    }),
  );
  const sampling = setInterval(() => {
    for (const one of watched) one.mostBytes = Math.max(one.mostBytes, one.node.memoryBytes);
  }, SAMPLE_MS);
  return async () => {
    clearInterval(sampling);
    return Promise.all(
      watched.map(async ({ node, beforeBytes, beforeMs, mostBytes, endProfile }) => {
        const cpuMs = node.cpuMs - beforeMs;
        const profile = await endProfile?.();
        if (profile !== undefined && profiles !== undefined)
          await writeFile(join(profiles, `${node.id}.cpuprofile`), JSON.stringify(profile));
        return { node: node.id, beforeBytes, mostBytes, cpuMs, lagMs: await node.lagMs(admin) };
      }),
    );
  };
}
