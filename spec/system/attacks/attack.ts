// Shared by the attacks: a backend whose tools write their answers themselves, and figures of what callers saw.

import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { caller, callTool, field, repeatRequests } from '../../helpers/clients/caller.ts';
import type { McpHarness } from '../../helpers/programs/mcp-program.ts';
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
export function startToolServer(
  tools: Answers,
  capabilities: object = INITIALIZED.capabilities,
  others: Answers = {},
): Promise<RawServer> {
  const call: Answer = (response, asked) => {
    response.on('error', () => {}); // clients may disconnect at any time
    tools[String(asked.params?.name)]?.(response, asked);
  };
  const list = result(toolsOf(Object.keys(tools)));
  const answers = {
    initialize: result({ ...INITIALIZED, capabilities }),
    ping: result({}),
    'tools/list': list,
  };
  return startRawServer(serving({ ...answers, ...others, 'tools/call': call }, [], messageWithoutArguments));
}

/**
 * The JSON-RPC message of a request; of a long one without its arguments: the backend shares its thread with the other caller, and
 * would not answer it while it parses 280,000 keys of the attacker.
 */
async function messageWithoutArguments(request: IncomingMessage): Promise<JsonObject> {
  const body = await text(request);
  if (body.length < LONG_CHARACTERS) return body === '' ? {} : JSON.parse(body);
  const edges = `${body.slice(0, EDGE_CHARACTERS)} ${body.slice(-EDGE_CHARACTERS)}`;
  const [, id] = /"id":("[^"]*"|\d+)/.exec(edges) ?? [];
  const [, method = ''] = /"method":"([^"]+)"/.exec(edges) ?? [];
  const [, name = ''] = /"name":"([^"]+)"/.exec(edges) ?? [];
  return { ...(id === undefined ? {} : { id: JSON.parse(id) }), method, params: { name } };
}

const LONG_CHARACTERS = 100_000;
const EDGE_CHARACTERS = 500;

/** Answers a call without content. */
export const nothing = result({ content: [] });

/**
 * Runs the attack while another caller makes one call of `demo/fast` at a time; asserts that each is served and that the gateway takes
 * less than 800 MiB, and prints figures.
 */
export async function othersAreServed(
  { url, program }: McpHarness,
  credentials: Readonly<Record<string, string>>,
  what: string,
  attack: () => Promise<unknown>,
): Promise<void> {
  let mostRss = 0;
  const watching = repeatRequests([
    () => {
      mostRss = Math.max(mostRss, rssOf(program.process.pid));
      return callTool(caller(url, credentials), 'demo', 'fast');
    },
  ]);
  await attack();
  const answers = await watching.stop();
  const { p50, p95 } = figuresOf(answers.map(({ tookMs }) => tookMs));
  process.stdout.write(`${what}: rss ${mostRss} MiB, others p50 ${p50} ms, p95 ${p95} ms\n`);
  const outcomes = answers.map((answer) =>
    `${answer.status} ${field(answer, 'error_code') ?? ''} ${field(answer, 'detail') ?? ''}`.trim(),
  );
  assert.equal([...new Set(outcomes)], ['200']);
  assert.ok(mostRss > 0 && mostRss < 800, `rss ${mostRss} MiB`);
  assert.ok(p50 < 1_000, `p50 ${p50} ms`);
}

/** In MiB. */
function rssOf(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const [, kib = '0'] = /VmRSS:\s+(\d+)/.exec(status) ?? [];
  return Math.round(Number(kib) / 1024);
}

/** Figures of these times, in whole ms. */
export function figuresOf(times: readonly number[]) {
  const sorted = times.toSorted((one, another) => one - another);
  const at = (part: number) => Math.round(sorted[Math.floor(part * (sorted.length - 1))] ?? 0);
  return { count: times.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), most: at(1) };
}
