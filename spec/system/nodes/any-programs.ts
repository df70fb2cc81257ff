// Programs of any node, for the journeys of several nodes.

import * as assert from 'uvu/assert';
import { toolText } from '../../helpers/caller.ts';
import type { McpNode } from './mcp-nodes.ts';

/** Registers `near/one`, a program that any node may run, and waits until it serves. */
export async function registerAny({ admin }: McpNode, args: readonly string[]): Promise<void> {
  const instance = { id: 'one', command: process.execPath, args, node: 'any' };
  const made = await admin('POST /gateway/register?wait=15', { template_name: 'near', instance });
  assert.is(made.status, 201, JSON.stringify(made.body));
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
