// Shared by the attacks: a backend whose tools write their answers themselves, and figures of what callers saw.

import { type RawServer, startRawServer } from '../../transports/raw-server.ts';
import { type Answer, type Answers, result, serving } from '../../transports/scripted-server.ts';

export const MIB = 1024 * 1024;

/** The result of `initialize`, and of `tools/list` for these tools. */
export const INITIALIZED = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: 'attacked', version: '1' },
};
export const toolsOf = (names: readonly string[]) => ({
  tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })),
});

/** A server of the legacy era without sessions. Its tools write their answers, or only a part of them. */
export function startToolServer(tools: Answers): Promise<RawServer> {
  const call: Answer = (response, asked) => {
    response.on('error', () => {}); // clients may disconnect at any time
    tools[String(asked.params?.name)]?.(response, asked);
  };
  const list = result(toolsOf(Object.keys(tools)));
  const answers = { initialize: result(INITIALIZED), ping: result({}), 'tools/list': list };
  return startRawServer(serving({ ...answers, 'tools/call': call }));
}

/** Answers a call without content. */
export const nothing = result({ content: [] });

/** Figures of these times, in whole ms. */
export function figuresOf(times: readonly number[]) {
  const sorted = times.toSorted((one, another) => one - another);
  const at = (part: number) => Math.round(sorted[Math.floor(part * (sorted.length - 1))] ?? 0);
  return { count: times.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), most: at(1) };
}
