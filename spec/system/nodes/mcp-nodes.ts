// Several nodes of one deployment, for the journeys of MCP clients: real gateways on one database, with an administrator, and
// an API key for clients.

import { hostname } from 'node:os';
import * as assert from 'uvu/assert';
import { type Json, objectOr } from '../../fixtures/wire.ts';
import { newKey } from '../../helpers/clients/caller.ts';
import { type AskOptions, type ClientOptions, ModernClient } from '../../helpers/clients/mcp-client.ts';
import type { Message } from '../../helpers/clients/mcp-wire.ts';
import { becomes } from '../../helpers/eventually.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { GUARDED, type McpHarness, startGuarded } from '../../helpers/programs/mcp-program.ts';
import type { FreshDatabase } from '../../helpers/services/services.ts';

/** Longest time until a change on one node applies on the others, in ms. */
export const heardWithinMs = 10_000;

const secret = 'a secret of these nodes, 32 bytes or more';

/** The capabilities of clients in these journeys, and their answer to elicitation. */
export const capabilities = { elicitation: {} };
export const accepted = {
  action: 'accept',
  content: { username: 'ada', email: 'ada@example.com', name: 'ada', ok: true },
};
/** A call that a legacy backend holds during its elicitation, and a call whose modern backend encrypts its state. */
export const ASKED = { name: 'test_elicitation', arguments: { message: 'Who?' } };
export const STATEFUL = { name: 'test_input_required_result_request_state', arguments: {} };

/** One gateway process. */
export interface McpNode extends McpHarness {
  readonly id: string;
  readonly port: number;
}

export interface NodeOptions {
  /** Default: a free one. */
  readonly port?: number;
  /** Default: the same for all. */
  readonly secret?: string;
  /** Further settings. */
  readonly env?: Readonly<Record<string, string>>;
  /** Its name; nodes on one file need different names. Default: derived from its port. */
  readonly id?: string;
}

/** The settings of a node. */
export function nodeEnv({ url }: Pick<FreshDatabase, 'url'>) {
  return { ...GUARDED, GATEWAY_DATABASE_URL: url, GATEWAY_SECRET_KEY: secret };
}

/** Starts a node on a separate port, which is part of its name. */
export async function startNode(
  database: Pick<FreshDatabase, 'url'>,
  options: NodeOptions = {},
): Promise<McpNode> {
  const port = options.port ?? (await freePort());
  const own = { GATEWAY_SECRET_KEY: options.secret ?? secret, GATEWAY_NODE_ID: options.id ?? '' };
  const started = await startGuarded({ port, env: { ...nodeEnv(database), ...own, ...options.env } });
  return { ...started, port, id: options.id || `${hostname()}:${port}` };
}

/** Two nodes on this database, and the options of their clients. Cleanups are put first in `opened`. */
export async function startPair(database: Pick<FreshDatabase, 'url'>, opened: (() => unknown)[]) {
  const start = async (id = ''): Promise<McpNode> => {
    const node = await startNode(database, { id });
    opened.unshift(node.remove);
    return node;
  };
  // On a file each node needs a name.
  const ids = database.url.startsWith('sqlite:') ? ['a', 'b'] : [];
  const [a, b] = [await start(ids[0]), await start(ids[1])];
  const { headers } = await newKey(a.admin, 'clients');
  return { a, b, options: { capabilities, headers } };
}

/** The outcome of one request of a modern client; `input_required` is a result like any other. */
export interface Round {
  readonly status: number;
  readonly instanceId: string | undefined;
  readonly result: Json;
  readonly error: Message['error'];
}

/** One request at one node, without a retry. */
export async function askOnce(
  { wire }: Pick<McpNode, 'wire'>,
  path: string,
  options: ClientOptions,
  method: string,
  params: Json = {},
  asked: AskOptions = {},
): Promise<Round> {
  const { id: _, ...sent } = new ModernClient(wire, path, options).request(method, params, asked);
  const { status, headers, messages } = await wire.exchange(path, sent);
  const answer = messages.at(-1);
  const instanceId = headers['x-instance-id'];
  return {
    status,
    instanceId: typeof instanceId === 'string' ? instanceId : undefined,
    result: objectOr(answer?.result),
    error: answer?.error,
  };
}

/** The params of the retry of a call, with the same answer to all input requests. */
export function retryOf(params: Json, { result }: Round, answer: Json): Json {
  const { requestState, inputRequests } = result;
  const keys = Object.keys(objectOr(inputRequests));
  assert.ok(keys.length > 0, `nothing was asked: ${JSON.stringify(result)}`);
  const inputResponses = Object.fromEntries(keys.map((key) => [key, answer]));
  return { ...params, requestState, inputResponses };
}

/** Status, code, and the reason or error code of a refusal. */
export function refusalOf({ status, error }: Round): readonly unknown[] {
  const { reason, error_code } = objectOr(error?.data);
  return [status, error?.code, reason ?? error_code];
}

/** Waits until a node serves a template to these clients; fails after the time limit. */
export async function isServed(
  node: Pick<McpNode, 'wire'>,
  path: string,
  options: ClientOptions,
): Promise<void> {
  const discover = async () => (await askOnce(node, path, options, 'server/discover')).status;
  await becomes(discover, 200, heardWithinMs);
}
