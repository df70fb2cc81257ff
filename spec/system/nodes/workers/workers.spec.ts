// A gateway with several workers: real processes that share one port, on PostgreSQL and on SQLite. Sessions are used at each of them, and go
// on when a worker is killed.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { everythingProgram } from '../../../fixtures/everything-server.ts';
import { becomes, eventually } from '../../../helpers/eventually.ts';
import { register } from '../../../helpers/programs/mcp-program.ts';
import { isRunning, readProcessFile } from '../../../helpers/programs/processes.ts';
import { freshDatabase, postgresql } from '../../../helpers/services/services.ts';
import { suite } from '../../../helpers/suite.ts';
import { SIMPLE, socketFolders, type Workers, workersOf } from './gateway-of-workers.ts';

const server = await postgresql();
const test = suite('journey: workers of one gateway', { timeoutMs: 240_000 });
const { opened, start } = workersOf(test);

const databases: readonly (readonly [name: string, open: () => Promise<string>, isThere: boolean])[] = [
  ['SQLite', async () => 'sqlite:///gateway.db', true],
  [
    'PostgreSQL',
    async () => {
      const { url, drop } = await freshDatabase({ url: server.url ?? '' });
      opened.unshift(drop);
      return url;
    },
    server.url !== undefined,
  ],
];

for (const [name, open, isThere] of databases) {
  const onDatabase = test.needs(isThere, server.skip);
  let gateway: Workers;

  onDatabase(`${name}: each worker serves the sessions of all, on one port`, async () => {
    gateway = await start({ GATEWAY_DATABASE_URL: await open() });
    await becomes(() => gateway.states(), ['1 live', '2 live']);
    for (const address of await gateway.addresses())
      assert.match(address, name === 'SQLite' ? /^unix:.*\/stagedoor-workers-\w+\/[12]$/ : /^http:/);
    const clients = await gateway.clients(4);
    for (const { sessionId } of clients)
      for (let n = 0; n < 4; n += 1) assert.equal(await gateway.call(sessionId), [200, SIMPLE]);
    const entries = () => [
      ...gateway.program.err.matchAll(/"worker":(\d),"method":"POST","path":"\/mcp\/legacy"/g),
    ];
    await becomes(() => [...new Set(entries().map(([, worker]) => worker))].sort(), ['1', '2']);
  });

  onDatabase(`${name}: a program runs once, and each worker uses it`, async () => {
    const program = everythingProgram();
    await register(gateway.admin, 'programs', [{ id: 'one', ...program }]);
    for (let n = 0; n < 6; n += 1) assert.equal(await gateway.callTool('programs'), [200, SIMPLE]);
    const file = program.args[0] ?? '';
    const isProgram = (pid: number) => readProcessFile(pid, 'cmdline').includes(file);
    assert.is(gateway.program.descendants().filter(isProgram).length, 1);
    // At once, so over several connections, each at the next worker.
    for (const command of ['drain', 'resume']) {
      const at = `POST /gateway/instances/programs/one/${command}`;
      const answers = await Promise.all(Array.from({ length: 6 }, () => gateway.admin(at)));
      assert.equal([...new Set(answers.map(({ status }) => status))], [200], command);
    }
  });

  onDatabase(`${name}: one scrape has the series of all workers`, async () => {
    const isOfAll = (text: string) =>
      [1, 2].every((worker) => new RegExp(`^stagedoor_\\w+\\{.*worker="${worker}".*\\} `, 'm').test(text));
    // A worker that does not answer within a second is missing.
    const text = await eventually(() => gateway.metrics(), isOfAll);
    assert.ok(isOfAll(text), text);
    const heads = text.match(/^# TYPE (\S+)/gm) ?? [];
    assert.is(new Set(heads).size, heads.length, 'each metric stands together');
  });

  onDatabase(`${name}: a worker that is silent is killed`, async () => {
    const [, second] = gateway.pids();
    process.kill(second, 'SIGSTOP');
    const asked = Promise.allSettled(Array.from({ length: 4 }, () => gateway.metrics()));
    await gateway.program.complains(/worker 2 did not answer for 8 s: it is killed/);
    const cut = (await asked).filter(({ status }) => status === 'rejected');
    assert.equal(cut, [], 'the connection that it had not taken goes to the other one');
    await becomes(() => gateway.pids()[1] !== second, true);
    await becomes(() => gateway.states(), ['1 live', '2 live']);
  });

  onDatabase(`${name}: a worker is killed; its sessions go on, and it is started again`, async () => {
    const clients = await gateway.clients(6);
    const before = gateway.pids();
    process.kill(before[0], 'SIGKILL');
    await becomes(() => isRunning(before[0]), false);
    await delay(200); // the other one sees that its connections have ended
    const startedAtMs = performance.now();
    for (const { sessionId } of clients) assert.equal(await gateway.call(sessionId), [200, SIMPLE]);
    assert.ok(performance.now() - startedAtMs < 10_000, 'not after the expiry of its row');
    await becomes(() => gateway.pids()[0] !== before[0], true);
    await becomes(() => gateway.states(), ['1 live', '2 live']);
    assert.is(gateway.pids()[1], before[1], 'the other one is still the same process');
    for (const { sessionId } of clients)
      for (let n = 0; n < 3; n += 1) assert.equal(await gateway.call(sessionId), [200, SIMPLE]);
  });

  onDatabase(`${name}: SIGTERM to the supervisor ends all in order, with exit code 0`, async () => {
    const pids = gateway.pids();
    gateway.program.signal('SIGTERM');
    assert.equal(await gateway.program.end(), { code: 0, signal: null });
    const stops = [...gateway.program.err.matchAll(/"duration_ms":(\d+),"msg":"stopped"/g)];
    assert.is(stops.length, 2);
    for (const [, durationMs] of stops)
      assert.ok(Number(durationMs) < 3_000, 'no wait for reads of the members');
    assert.equal(pids.filter(isRunning), []);
    assert.equal(socketFolders(gateway.program), []);
  });
}

test.run();
