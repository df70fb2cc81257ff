// Programs of any node, for the journeys of several nodes.

import { randomUUID } from 'node:crypto';
import * as assert from 'uvu/assert';
import { stdioServerPath } from '../../../fixtures/programs.ts';
import { field, toolText } from '../../../helpers/clients/caller.ts';
import { processesWhere } from '../../../helpers/programs/processes.ts';
import type { McpNode } from '../mcp-nodes.ts';

const SAMPLE_MS = 20;

/** Registers `near/one`, a program that any node may run because nothing else is said, and waits until it serves. The result is an argument of it alone. */
export async function registerAny({ admin }: McpNode, ...flags: readonly string[]): Promise<string> {
  const mark = `--mark=${randomUUID()}`;
  const args = [stdioServerPath, ...flags, mark];
  const instance = { id: 'one', command: process.execPath, args };
  const made = await admin('POST /gateway/register?wait=15', { template_name: 'near', instance });
  assert.equal([made.status, field(made, 'node_id')], [201, 'any'], JSON.stringify(made.body));
  return mark;
}

/** Looks for the program all the time: which processes it had, in the order of their appearance, and how many at once at most. */
export function sample(mark: string) {
  const groups: number[] = [];
  let most = 0;
  let count = 0;
  const look = (): void => {
    const now = processesWhere('cmdline', (line) => line.split('\0').includes(mark));
    count += 1;
    most = Math.max(most, now.length);
    for (const pid of now) if (!groups.includes(pid)) groups.push(pid);
  };
  look();
  const timer = setInterval(look, SAMPLE_MS);
  return {
    end: () => {
      clearInterval(timer);
      return { groups, most, count };
    },
  };
}

export function callAt({ admin }: McpNode) {
  return admin('POST /mcp/near/tools/call', { name: 'pid' });
}

/** The process that answers a call at this node. */
export async function pidAt(node: McpNode): Promise<number> {
  return Number(toolText(await callAt(node)));
}

/** Whether a call at this node is answered by another process than this one. */
export function servesAnew(node: McpNode, before: number) {
  return async (): Promise<boolean> => {
    const answer = await callAt(node);
    return answer.status === 200 && Number(toolText(answer)) !== before;
  };
}

/** The node of this process, and the other one. */
export function apart(nodes: readonly McpNode[], pid: number): [McpNode, McpNode] {
  const holder = nodes.find(({ program }) => program.descendants().includes(pid));
  const other = nodes.find((node) => node !== holder);
  assert.ok(holder && other, `no node runs ${pid}`);
  return [holder as McpNode, other as McpNode];
}
