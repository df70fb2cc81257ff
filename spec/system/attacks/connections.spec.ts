// Connections without credentials, inside 1 GiB: the gateway survives them, and serves callers at other addresses, also on new
// connections.

import * as assert from 'uvu/assert';
import { type Answer, caller, callTool, newKey, repeatRequests } from '../../helpers/clients/caller.ts';
import { type McpHarness, PASSWORD, register, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { canLimitMemory, MemoryLimit } from '../../helpers/programs/memory-limit.ts';
import { suite } from '../../helpers/suite.ts';
import type { RawServer } from '../../transports/raw-server.ts';
import { figuresOf, MIB, nothing, startToolServer } from './attack.ts';
import { type Held, holdConnections } from './hold-connections.ts';

const test = suite('connections without credentials in 1 GiB', { timeoutMs: 120_000 });
const withLimit = test.needs(canLimitMemory, 'needs the right to make control groups (root on Linux)');

let backend: RawServer;
if (canLimitMemory) {
  test.before(async () => {
    backend = await startToolServer({ fast: nothing });
  });
  test.after(() => backend.close());
}

const START = 'HTTP/1.1\r\nHost: x\r\n';
const LOGIN = `POST /auth/login ${START}Content-Type: application/x-www-form-urlencoded\r\n`;
const ATTACKS: Readonly<Record<string, Omit<Held, 'port' | 'lastsMs'>>> = {
  '16,000 connections with unfinished headers': {
    ...{ connections: 16_000, addresses: 20, bytes: `GET / ${START}X: *` },
  },
  '16,000 connections with 200 unfinished headers': {
    ...{ connections: 16_000, addresses: 20, bytes: `GET / ${START}%` },
  },
  '16,000 connections of one address': { connections: 16_000, addresses: 1, bytes: `GET / ${START}%` },
  'headers that arrive byte by byte': {
    ...{ connections: 9_000, addresses: 20, bytes: `GET / ${START}X: *`, drip: 'x' },
  },
  'unfinished bodies for a login': {
    ...{ connections: 8_600, addresses: 20, bytes: `${LOGIN}%Content-Length: 60000\r\n\r\n#` },
  },
  'unfinished bodies that are not counted one by one': {
    ...{ connections: 8_600, addresses: 20, bytes: `${LOGIN}%Content-Length: 4000\r\n\r\nx` },
  },
  'unfinished chunked bodies': {
    ...{ connections: 8_600, addresses: 20, bytes: `${LOGIN}%Transfer-Encoding: chunked\r\n\r\nc350\r\n#` },
  },
  'bodies announced with Expect: 100-continue': {
    ...{
      connections: 8_600,
      addresses: 20,
      bytes: `${LOGIN}%Expect: 100-continue\r\nContent-Length: 60000\r\n\r\n`,
    },
  },
  'unfinished headers behind a complete request': {
    ...{ connections: 9_000, addresses: 20, bytes: `GET /livez ${START}\r\nGET / ${START}%` },
  },
  'short pipelined requests whose answers are not read': {
    ...{ connections: 1_900, addresses: 20, bytes: `GET /openapi.json ${START}\r\n` },
    ...{ times: 400, isSilent: true },
  },
  'pipelined requests without a host': {
    ...{ connections: 1_900, addresses: 20, bytes: 'GET / HTTP/1.1\r\n\r\n', times: 3_000, isSilent: true },
  },
  'pipelined requests with an unknown expectation': {
    ...{ connections: 1_900, addresses: 20, bytes: `GET / ${START}Expect: x\r\n\r\n`, times: 1_400 },
  },
  'idle connections after a request': {
    ...{ connections: 12_000, addresses: 20, bytes: `GET /livez ${START}\r\n` },
  },
};

for (const [name, attack] of Object.entries(ATTACKS)) {
  withLimit(`${name}: memory is bounded, and others are served`, async () => {
    const memory = new MemoryLimit(1024 * MIB);
    let harness: McpHarness | undefined;
    try {
      harness = await startGuarded({ memory });
      const { url, admin, program } = harness;
      await register(admin, 'demo', [{ id: 'one', endpoint: backend.url }]);
      const other = caller(url, (await newKey(admin, 'other')).headers);
      const logins: Answer[] = [];
      const login = () =>
        caller(url, { Connection: 'close' })('POST /auth/login', { username: 'admin', password: PASSWORD });
      const watching = repeatRequests([() => callTool(other, 'demo', 'fast')]);
      const held = holdConnections({ ...attack, port: Number(new URL(url).port), lastsMs: 3_000 });
      for (let count = 0; count < 5; count += 1) logins.push(await login());
      const open = await held;
      const answers = await watching.stop();
      const peakMib = Math.round(memory.peakBytes / MIB);
      const others = figuresOf(answers.map(({ tookMs }) => tookMs));
      process.stdout.write(`${JSON.stringify({ name, open, peakMib, others })}\n`);
      assert.is(program.process.exitCode, null);
      assert.equal([...new Set(answers.map(({ status }) => status))], [200]);
      assert.equal([...new Set(logins.map(({ status }) => status))], [200]);
      assert.ok(peakMib < 800, `peak ${peakMib} MiB`);
    } finally {
      await harness?.remove();
      await memory.remove();
    }
  });
}

test.run();
