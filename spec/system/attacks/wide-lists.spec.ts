// Clients that ask for a list with hundreds of thousands of values and read nothing, inside 1 GiB: as values, and as the answer over
// REST, it takes many times the bytes of its server. The gateway survives and serves other callers.

import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import * as assert from 'uvu/assert';
import { caller, newKey, repeatRequests } from '../../helpers/clients/caller.ts';
import { head } from '../../helpers/clients/raw-http.ts';
import { type McpHarness, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { canLimitMemory, MemoryLimit } from '../../helpers/programs/memory-limit.ts';
import { suite } from '../../helpers/suite.ts';
import { type RawServer, startRawServer } from '../../transports/raw-server.ts';
import { type Asked, result, serving } from '../../transports/scripted-server.ts';
import { INITIALIZED, MIB, nothing, othersAreServed, startToolServer } from './attack.ts';

const test = suite('wide lists in 1 GiB', { timeoutMs: 240_000 });
const withLimit = test.needs(canLimitMemory, 'needs the right to make control groups (root on Linux)');

type Credentials = Readonly<Record<string, string>>;

const CLIENTS = 300;
const ATTACKERS = 6;
/** Nearly as many values, and bytes, as the gateway parses, and of each tool half as many as of one item. */
const TOOLS = 20;
const ARGUMENTS = 22_500;

let servers: Readonly<Record<'demo' | 'same' | 'other', RawServer>>;
let memory: MemoryLimit;
let harness: McpHarness;
if (canLimitMemory) {
  test.before(async () => {
    servers = {
      demo: await startToolServer({ fast: nothing }),
      same: await startListServer(() => 0),
      other: await startListServer((request) => request),
    };
    memory = new MemoryLimit(1024 * MIB);
    harness = await startGuarded({ memory });
    for (const [template, { url }] of Object.entries(servers))
      await register(harness.admin, template, [{ id: template, endpoint: url }]);
  });
  test.after(async () => {
    await harness.remove();
    await memory.remove();
    await Promise.all(Object.values(servers).map((server) => server.close()));
  });
}

async function key(): Promise<Credentials> {
  return (await newKey(harness.admin, 'spec')).headers;
}

/** A server with tools that have many arguments. `versionOf`: of the list that the request with this number gets. */
function startListServer(versionOf: (request: number) => number): Promise<RawServer> {
  const schemaOf = (tool: number): string => {
    const properties = Array.from({ length: ARGUMENTS }, (_, index) => `"arg${tool * ARGUMENTS + index}":{}`);
    return `"inputSchema":{"type":"object","properties":{${properties}}}`;
  };
  const others = Array.from(
    { length: TOOLS - 1 },
    (_, tool) => `{"name":"wide${tool}",${schemaOf(tool + 1)}}`,
  );
  const list = Buffer.from(`${schemaOf(0)}},${others}]}}`);
  let requests = 0;
  const listed = (response: ServerResponse, { id }: Asked): void => {
    requests += 1;
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const tool = `"name":"wide","description":"version ${versionOf(requests)}",`;
    response.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"tools":[{${tool}`);
    response.end(list);
  };
  const initialize = result(INITIALIZED);
  return startRawServer(
    serving({ initialize, ping: result({}), 'tools/list': listed, 'tools/call': nothing }),
  );
}

/** Asks for the list and reads the beginning of the answer. `status` is undefined when the connection is closed before. */
function askAndNotRead(template: string, credentials: Credentials) {
  const socket = connect(Number(new URL(harness.url).port), '127.0.0.1').on('error', () => {});
  socket.write(head(`GET /mcp/${template}/tools/list`, credentials));
  const status = new Promise<string | undefined>((resolve) => {
    socket.once('data', (answer: Buffer) => {
      socket.pause();
      resolve(answer.toString('latin1', 'HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
    });
    socket.once('close', () => resolve(undefined));
  });
  return { socket, status };
}

for (const [template, what] of [
  ['same', 'a list'],
  ['other', 'a list that is another one each time'],
] as const) {
  withLimit(`${CLIENTS} clients that ask for ${what} and do not read are bounded in memory`, async () => {
    const keys = await Promise.all(Array.from({ length: ATTACKERS }, key));
    await othersAreServed(harness, await key(), what, async () => {
      const alive = repeatRequests([() => caller(harness.url)('GET /livez')]);
      const clients = Array.from({ length: CLIENTS }, (_, index) =>
        askAndNotRead(template, keys[index % ATTACKERS] ?? {}),
      );
      const statuses = await Promise.all(clients.map(({ status }) => status));
      const lives = await alive.stop();
      for (const { socket } of clients) socket.destroy();
      const counts = [...Map.groupBy(statuses, String)].map(
        ([status, { length }]) => `${length} x ${status}`,
      );
      process.stdout.write(`  the attackers were answered ${counts.join(', ')}\n`);
      assert.ok(statuses.includes('200'), counts.join());
      assert.equal([...new Set(lives.map(({ status }) => status))], [200]);
    });
    assert.is(harness.program.process.exitCode, null, harness.program.err);
  });
}

test.run();
