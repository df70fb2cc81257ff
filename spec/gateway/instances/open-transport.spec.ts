// The functions that open instances: they find handlers that are registered later, open nothing in denied networks, start only
// what may be started, and remember what an opening has learned.

import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { systemClock } from '../../../src/domain/time/clock.ts';
import { TaskScheduler } from '../../../src/domain/time/task-scheduler.ts';
import { createOpenTransport } from '../../../src/gateway/instances/open-transport.ts';
import type { InProcessHandler } from '../../../src/transports/open-options.ts';
import type { TransportDiagnostics } from '../../../src/transports/transport.ts';
import { instanceDefinition, refusal } from '../../conformance/transport.ts';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { definition } from '../../helpers/backends/profiles.ts';
import { until } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { codeOf, errorOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { fixture, node, withStarts } from '../../transports/stdio/open-stdio.ts';

const test = suite('openTransport', { timeoutMs: 30_000 });
const folder = folderOfAll(test)();
const { signal } = new AbortController();
const handlers = new Map<string, InProcessHandler>();
const network = { isDenied: () => false };
const shared = { handlers, clock: systemClock, scheduler: new TaskScheduler(), network };

test('opens a handler that is registered later', async () => {
  const open = createOpenTransport(shared);
  const instance = definition('a', { transport: 'in-process' });
  assert.is(await codeOf(open(instance)(signal)), 'BACKEND_UNAVAILABLE');
  handlers.set(instance.serverId, () => ({}));
  const transport = await open(instance)(signal);
  assert.is(transport.kind, 'in-process');
  await transport.close();
});

test('opens nothing in a denied network', async () => {
  const server = await startHttpServer();
  const instance = definition('a', { transport: 'http', endpoint: server.url });
  const denied = createOpenTransport({ ...shared, network: { isDenied: () => true } });
  assert.is(await codeOf(denied(instance)(signal)), 'BACKEND_UNAVAILABLE');
  const transport = await createOpenTransport(shared)(instance)(signal);
  await transport.close();
  await server.close();
});

test('gives programs the environment of their template, which their own variables override', async () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a placeholder of a template
  const rules = { id: 'demo', environment: { UNITS: 'metric', ROOT: '${SCRATCH}/x', OWN: 'template' } };
  const code = 'console.error(process.env.UNITS, process.env.ROOT, process.env.OWN); process.exit(1)';
  const program = { command: process.execPath, args: ['-e', code], env: { OWN: 'instance' } };
  const open = createOpenTransport({
    ...shared,
    definitions: new Map([['demo', rules]]),
  });
  const { stderr } = (
    await errorOf(open(definition('a', { transport: 'stdio', template: 'demo', ...program }))(signal))
  ).facts;
  assert.equal(stderr?.at(-1), 'metric undefined instance');
});

const asRoot = test.needs(process.getuid?.() === 0, 'only root can start programs as another user');

asRoot('asks a program for its version as the user that runs it', async () => {
  const command = join(folder, 'node');
  await writeFile(command, '#!/bin/sh\necho "v$(id -u).$(id -g)"\n', { mode: 0o755 });
  await chmod(folder, 0o755);
  const definitions = new Map([['demo', { id: 'demo', requires: ['node>=70000'] }]]);
  const user = { uid: 1234, gid: 5678, home: '/' };
  const open = createOpenTransport({ ...shared, definitions, programs: { user } });
  const instance = definition('a', { transport: 'stdio', template: 'demo', command, args: [] });
  const { reason } = (await errorOf(open(instance)(signal))).facts;
  assert.match(String(reason), /--version" prints 1234\.5678$/);
});

test('starts no program whose template requires a program or version that is missing', async () => {
  const reasonOf = async (requires: string[], command = 'node', env = {}, workingDir = folder) => {
    const rules = { id: 'demo', requires };
    const open = createOpenTransport({
      ...shared,
      definitions: new Map([['demo', rules]]),
    });
    const instance = definition('a', {
      transport: 'stdio',
      template: 'demo',
      command,
      args: ['-e', '"started"'],
      env,
      workingDir,
    });
    return (await errorOf(open(instance)(signal))).facts.reason;
  };
  const [major = ''] = process.versions.node.split('.');
  const started = 'exited with code 0';
  assert.is(
    await reasonOf([`node>=${major}`, 'node', `node >= ${Number(major) - 1}.99`], process.execPath),
    started,
  );
  assert.is(await reasonOf(['a soft heart', 'node<3', 'java>=99'], process.execPath), started, 'other forms');
  assert.is(
    await reasonOf(['node >= 999'], process.execPath),
    `it is not started: its template requires node >= 999, and "${process.execPath} --version" prints ${process.versions.node}`,
  );
  assert.match(
    String(await reasonOf(['bun>=1'], process.execPath, { PATH: '/nowhere' })),
    /requires bun>=1, and program "bun" not found$/,
  );
  await writeFile(join(folder, 'python3'), '#!/bin/sh\necho Python 3.9.2\n', { mode: 0o755 });
  const path = { PATH: `${folder}:${process.env.PATH}` };
  assert.is(await reasonOf(['python>=3.9.2.0'], process.execPath, path), started);
  assert.match(
    String(await reasonOf(['python>=3.10'], process.execPath, path)),
    /"python3 --version" prints 3\.9\.2$/,
  );
  assert.match(
    String(await reasonOf(['python>=3.10'], './python3', {}, folder)),
    `"${folder}/python3 --version" prints 3.9.2`,
  );
});

test('asks a program for its version once, however many requirements name it', async () => {
  const asked = join(folder, 'asked');
  await writeFile(join(folder, 'git'), `#!/bin/sh\necho x >> ${asked}\necho git version 2.1\n`, {
    mode: 0o755,
  });
  const rules = { id: 'demo', requires: [...Array(20).fill('git>=2'), 'git>=3'] };
  const definitions = new Map([['demo', rules]]);
  const open = createOpenTransport({ ...shared, definitions });
  const env = { PATH: `${folder}:${process.env.PATH}` };
  const instance = definition('a', {
    transport: 'stdio',
    template: 'demo',
    command: 'nothing',
    args: [],
    env,
  });
  const { reason } = (await errorOf(open(instance)(signal))).facts;
  assert.match(String(reason), /requires git>=3, and "git --version" prints 2\.1$/);
  assert.is(await readFile(asked, 'utf8'), 'x\n');
});

test('remembers what was learned of an instance, for the openings of its function', () =>
  withStarts(async (counted, starts) => {
    const openTransport = createOpenTransport(shared);
    const instance = instanceDefinition(counted(fixture('--before-initialize=exit')));
    const open = openTransport(instance);
    const startsOf = async (opening = open): Promise<number> => {
      const before = await starts();
      await (await opening(signal)).close();
      return (await starts()) - before;
    };
    assert.equal([await startsOf(), await startsOf(), await startsOf(openTransport(instance))], [2, 1, 2]);
  }));

test('shows the stderr and pid of a program before it has answered', async () => {
  const code = "console.error('loading'); console.log('hello'); setInterval(() => {}, 1000)";
  const managed = { endpoint: 'http://127.0.0.1:9/mcp', transport: 'http' } as const;
  for (const fields of [{}, managed]) {
    const stop = new AbortController();
    let diagnostics: (() => TransportDiagnostics) | undefined;
    const open = createOpenTransport(shared)(instanceDefinition({ ...node(code), ...fields }));
    const opening = open(stop.signal, {
      onStarted: (started) => {
        diagnostics = started;
      },
    });
    await until(() => (diagnostics?.().stderr.length ?? 0) > 0, 'the first line');
    assert.match(String(diagnostics?.().stderr), 'loading');
    assert.type(diagnostics?.().pid, 'number');
    stop.abort();
    await refusal(opening);
  }
});

test('stops a program at its start limit, which no other backend has', async () => {
  const silent = node('setInterval(() => {}, 1000)');
  const open = (fields: object, startTimeoutMs: number) =>
    createOpenTransport(shared)(instanceDefinition({ ...silent, ...fields }))(signal, {
      startTimeoutMs,
    });
  const reason = async (opening: Promise<unknown>) => String((await errorOf(opening)).facts.reason);
  assert.is(await reason(open({}, 300)), 'no handshake within 0.3 s');
  const server = await startHttpServer();
  const managed = { endpoint: 'http://127.0.0.1:9/mcp', transport: 'http' } as const;
  assert.match(await reason(open(managed, 300)), 'connection refused');
  const transport = await createOpenTransport(shared)(
    definition('a', { transport: 'http', endpoint: server.url }),
  )(signal, { startTimeoutMs: 1 });
  await transport.close();
  await server.close();
});

test('a failure names proxy variables that the program may lack, without their values', async () => {
  process.env.HTTPS_PROXY = 'http://me:secret@proxy:3128';
  const reasonOf = async (programs = {}) => {
    const offline = "console.error('getaddrinfo ENOTFOUND registry.example'); process.exit(1)";
    const open = createOpenTransport({ ...shared, programs })(instanceDefinition(node(offline)));
    return (await refusal(open(signal))).facts.reason;
  };
  const missing = /; the gateway has HTTPS_PROXY, which the program does not get \(stdio\.pass_env\)$/;
  assert.match(String(await reasonOf()), missing);
  assert.not.match(String(await reasonOf({ passEnv: ['HTTPS_PROXY'] })), missing);
  delete process.env.HTTPS_PROXY;
});

test.run();
