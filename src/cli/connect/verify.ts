// Proves that a snippet works: starts its program, or sends its requests, as a client would, and lists the tools. Calls no tool.

import { setTimeout as delay } from 'node:timers/promises';
import type { Connection, EndpointConnection, Key, ProgramConnection } from '../../connect/kind.ts';
import { isJsonObject, type JsonObject, jsonIn } from '../../domain/json.ts';
import { LEGACY_VERSIONS } from '../../domain/mcp.ts';
import { VERSION } from '../../domain/version.ts';
import { Child } from '../../transports/stdio/child-process.ts';
import { LineDecoder } from '../../transports/stdio/line-decoder.ts';
import { Reaper } from '../../transports/stdio/process-group.ts';
import { requestCredentials } from '../accounts/credentials.ts';
import { fields, listOf } from '../answers.ts';
import { Bridge } from '../bridge/bridge.ts';
import { GatewayLink } from '../bridge/gateway-link.ts';
import { CommandFailure } from '../failures.ts';
import { Remote } from '../remote.ts';
import type { Terminal } from '../terminal.ts';

export interface Verification {
  /** Undefined for a client of the HTTP API. */
  readonly server?: string;
  readonly protocolVersion?: string;
  readonly tools: readonly string[];
  /** From the start to the last page of tools. */
  readonly ms: number;
}

/** Longest time for the whole verification, in ms: a program may have to be downloaded first. */
const VERIFY_MS = 60_000;
/** Longest wait for the end of a program after the end of its input, and after SIGTERM, in ms. */
const END_MS = 3_000;

/** Throws CommandFailure with the reason when the snippet does not work. `env` has the key, or there is a login. */
export async function verify(connection: Connection, env: Terminal['env']): Promise<Verification> {
  const beganAtMs = performance.now();
  const line = connection.transport === 'http' ? endpointLine(connection, env) : programLine(connection, env);
  try {
    const found = await Promise.race([
      listTools(line),
      line.failed,
      delay(VERIFY_MS, undefined, { ref: false }).then(() => {
        throw new CommandFailure(`no answer within ${VERIFY_MS / 1000} s`);
      }),
    ]);
    return { ...found, ms: Math.round(performance.now() - beganAtMs) };
  } finally {
    await line.close();
  }
}

/** The same for a client of the HTTP API: lists the tools with one request. */
export async function verifyApi(
  { template, url, key }: Pick<Connection, 'template' | 'url' | 'key'>,
  env: Terminal['env'],
): Promise<Verification> {
  const beganAtMs = performance.now();
  const headers = key === undefined ? {} : headersOf(key, url, env);
  const refused = (reason: string) => new CommandFailure(reason);
  const gateway = new Remote(url, { headers, refused }, (_, work) => work(() => {}));
  const answer = await gateway.request(`/mcp/${template}/tools/list`, { timeoutMs: VERIFY_MS });
  const tools = listOf(fields(answer).tools).map(({ name }) => String(name));
  return { tools, ms: Math.round(performance.now() - beganAtMs) };
}

interface ServerLine {
  /** Receives the lines of the server; set before anything is sent. */
  onLine: (line: string) => void;
  send(line: string): void;
  readonly failed: Promise<never>;
  close(): Promise<void>;
}

async function listTools(line: ServerLine): Promise<Omit<Verification, 'ms'>> {
  const waiting: PromiseWithResolvers<JsonObject>[] = [];
  const send = (message: object) => line.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
  const ask = (method: string, params: unknown): Promise<JsonObject> => {
    const answer = Promise.withResolvers<JsonObject>();
    send({ id: waiting.push(answer), method, params });
    return answer.promise;
  };
  line.onLine = (text) => {
    const message = jsonIn(text);
    if (message === undefined) return; // some servers write other lines, too, and clients drop them
    const { id, method, result, error } = fields(message);
    if (typeof method === 'string') {
      if (id === undefined) return;
      const isPing = method === 'ping';
      send({ id, ...(isPing ? { result: {} } : { error: { code: -32601, message: 'Method not found' } }) });
      return;
    }
    const answer = typeof id === 'number' ? waiting[id - 1] : undefined;
    if (isJsonObject(result)) answer?.resolve(result);
    else answer?.reject(new CommandFailure(String(fields(error).message ?? 'an answer without a result')));
  };
  const initialized = await ask('initialize', {
    protocolVersion: LEGACY_VERSIONS[0],
    capabilities: {},
    clientInfo: { name: 'stagedoor-connect', version: VERSION },
  });
  send({ method: 'notifications/initialized' });
  const { name = 'unnamed', version = '' } = fields(initialized.serverInfo);
  const server = `${name} ${version}`.trim();
  const tools: string[] = [];
  let cursor: unknown;
  do {
    const page = await ask('tools/list', typeof cursor === 'string' ? { cursor } : {});
    tools.push(...listOf(page.tools).map(({ name }) => String(name)));
    cursor = page.nextCursor;
  } while (typeof cursor === 'string' && tools.length < MOST_TOOLS);
  return { server, protocolVersion: String(initialized.protocolVersion), tools };
}

const MOST_TOOLS = 10_000;

function endpointLine({ endpoint, url, key }: EndpointConnection, env: Terminal['env']): ServerLine {
  const headers = key === undefined ? {} : headersOf(key, url, env);
  const line: ServerLine = {
    onLine: () => {},
    send: (text) => bridge.receive(text),
    failed: new Promise(() => {}),
    close: () => bridge.close({ isImmediate: true }),
  };
  const log = () => {}; // every failure is an answer, too
  const link = new GatewayLink(endpoint, () => headers, log, AWAY_MS);
  const bridge = new Bridge({ link, write: async (text) => line.onLine(text), log });
  return line;
}

function headersOf(key: Key, url: string, env: Terminal['env']): Readonly<Record<string, string>> {
  const value = key.value ?? env[key.variable];
  return value ? { 'X-API-Key': value } : requestCredentials(url, env).headers;
}

/** Longest wait for an unreachable gateway, in ms: it answered a moment ago. */
const AWAY_MS = 2_000;

function programLine({ command, args, env, key }: ProgramConnection, outer: Terminal['env']): ServerLine {
  const value = key === undefined ? undefined : (key.value ?? outer[key.variable]);
  const lines = new LineDecoder({
    onLine: (bytes) => line.onLine(bytes.toString('utf8')),
    onOversize: () => {},
  });
  const own = { ...env, ...(value ? { STAGEDOOR_API_KEY: value } : {}) };
  const child = new Child(
    { command, args, env: own },
    {
      onOutput: (chunk) => lines.write(chunk),
      ladder: { stdinEndMs: END_MS, terminateMs: END_MS },
      reaper: new Reaper([END_MS, END_MS]), // for Ctrl-C
      // A client passes on its whole environment.
      ...{ environment: outer, passEnv: Object.keys(outer) },
    },
  );
  const line: ServerLine = {
    onLine: () => {},
    send: (text) => child.write(`${text}\n`, () => {}),
    failed: child.exited.then((reason) => {
      const last = child.lastLines.at(-1);
      throw new CommandFailure(`${command} ${reason}${last === undefined ? '' : `; last output: ${last}`}`);
    }),
    close: () => child.stop(),
  };
  void Promise.allSettled([line.failed]); // marks it as handled: it rejects after `close`, too
  return line;
}
