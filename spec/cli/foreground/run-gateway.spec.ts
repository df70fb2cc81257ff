// The foreground run in this process, with simulated signals. Whole programs are in spec/system/journeys.

import { EventEmitter } from 'node:events';
import { tmpdir } from 'node:os';
import { pino } from 'pino';
import * as assert from 'uvu/assert';
import { UsageError } from '../../../src/cli/failures.ts';
import { runGateway } from '../../../src/cli/foreground/run-gateway.ts';
import { loadConfig } from '../../../src/config/config.ts';
import { VERSION } from '../../../src/domain/version.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { messageOf, rejects, thrownBy } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { serverFor } from '../commands/against-gateway.ts';
import { type RecordingOptions, recordingTerminal } from '../recording-terminal.ts';

const test = suite('run gateway');
const folder = folderOfEach(test);
const serve = serverFor(test);

test('prints where it listens, serves, and shuts down after a signal', async () => {
  const { stop, terminal, logged, listening } = run({ port: '0' });
  const url = await listening;
  assert.is((await fetch(`${url}/readyz`)).status, 200);
  assert.is(await stop(), 0);
  assert.equal(terminal.printed, [
    `stagedoor ${VERSION} listening on ${url}`,
    'database memory://: in memory, lost when the gateway stops',
    `MCP clients: ${url}/mcp/<template>; "npx stagedoor connect <template> --url ${url}" shows how`,
    `console: ${url}/console`,
    'stopping after SIGTERM: calls in flight have 25 s to finish; a second signal stops at once',
  ]);
  assert.equal(terminal.complaints, []);
  const said = logged.map((line) => JSON.parse(line)).filter(({ level }) => level === 30);
  const [stopping, stopped] = said.slice(-2);
  assert.equal([stopping.msg, stopping.calls, stopping.grace_ms], ['the gateway is stopping', 0, 25_000]);
  assert.equal([stopped.msg, typeof stopped.duration_ms], ['stopped', 'number']);
});

test('names the public address to MCP clients, whose tokens are for it', async () => {
  const { stop, terminal, listening } = run({ port: '0', 'public-url': 'https://gateway.example.com/' });
  await listening;
  await stop();
  assert.match(terminal.printed.join('\n'), '\nMCP clients: https://gateway.example.com/mcp/<template>; ');
});

test('logs events of stored instances from their first start on', async () => {
  const flags = { port: '0', database: 'sqlite:///gateway.db' };
  for (const time of [1, 2]) {
    const { logged, listening, stop } = run(flags, { folder: folder() });
    const body = JSON.stringify({ template_name: 't', id: 'a', endpoint: 'http://127.0.0.1:9/mcp' });
    const headers = { 'Content-Type': 'application/json' };
    if (time === 1) await fetch(`${await listening}/gateway/register`, { method: 'POST', headers, body });
    else await listening;
    assert.is(await stop(), 0);
    const [first] = logged.map((line) => JSON.parse(line)).filter((line) => line.instance_id === 'a');
    assert.is(first.msg, time === 1 ? 'instance registered' : 'instance.starting');
  }
});

test('warns when every caller on the network is an admin, or passwords cross it unencrypted', async () => {
  const open = run({ port: '0', host: '0.0.0.0' });
  await open.listening;
  await open.stop();
  const greeting = String(open.terminal.printed[0]);
  assert.match(greeting, / listening on 0\.0\.0\.0:(\d+) \(http:\/\/127\.0\.0\.1:\1 here\)$/);
  assert.match(
    open.logged.join(''),
    /"level":40,.*"msg":"authentication is off: anyone who can reach 0\.0\.0\.0 is an admin/,
  );

  const guarded = run({ port: '0', host: '0.0.0.0', auth: true }, { columns: 80 });
  await guarded.listening;
  await guarded.stop();
  assert.not.match(guarded.logged.join(''), 'authentication is off');
  assert.match(guarded.logged.join(''), /"level":40,.*UNENCRYPTED: .* 0\.0\.0\.0 without TLS/);
  const local = run({ port: '0', host: '127.0.0.1', auth: true }, { columns: 80 });
  await local.listening;
  await local.stop();
  assert.not.match(local.logged.join(''), '"level":40');
});

test('prints the first password on a terminal once, and never to the log', async () => {
  const flags = { port: '0', auth: true, database: 'sqlite:///gateway.db' };
  const printed: string[] = [];
  for (const time of [1, 2]) {
    const { terminal, logged, listening, stop } = run(flags, { columns: 80, folder: folder() });
    await listening;
    assert.is(await stop(), 0);
    const said = terminal.printed.join('\n');
    printed.push(said);
    const [, url] = / listening on (\S+)$/m.exec(said) ?? [];
    // Another gateway may run at the usual address.
    const login = `log in with "npx stagedoor gateway login admin --url ${url}"`;
    assert.is(terminal.printed.includes(login), time === 1);
    const [, password] =
      /^created the user "admin"; its password, shown only once: (\S+)$/m.exec(printed[0] ?? '') ?? [];
    assert.is(password?.length, 24);
    assert.not.match(logged.join(''), String(password));
    assert.is(printed[time - 1]?.includes(String(password)), time === 1);
  }
  assert.match(String(printed[1]), `database ${folder('gateway.db')}`);
});

test('ends with a usage error when the port, the registry file or the database cannot be used', async () => {
  const refusals = [
    { port: new URL(await serve(() => {})).port },
    { 'registry-file': 'nothing-is-here.json' },
    { database: 'postgresql://127.0.0.1:1/db' },
    { database: 'nothing://a' },
    { database: 'sqlite:///no-such-folder/gateway.db' },
  ];
  for (const flags of refusals) {
    const { ended, signals } = run({ port: '0', ...flags });
    assert.instance(await thrownBy(ended), UsageError);
    assert.equal(signals.eventNames(), [], 'signals are given back');
  }
});

test('stops what it has started when it cannot announce that it is ready', async () => {
  const onReady = () => {
    throw new Error('no space');
  };
  const { ended, listening } = run({ port: '0' }, {}, onReady);
  const url = await listening;
  assert.match(await messageOf(ended, Error), 'no space');
  await rejects(fetch(`${url}/livez`), TypeError, /fetch failed/);
});

test.run();

function run(flags: Record<string, string | boolean>, options: RecordingOptions = {}, onReady = () => {}) {
  const folder = options.folder ?? tmpdir();
  const config = loadConfig({
    flags: { host: '127.0.0.1', database: 'memory://', auth: false, ...flags },
    env: {},
    cwd: folder,
    readFile: () => undefined,
  });
  const received = Promise.withResolvers<string>();
  const onPrint = (text: string) => received.resolve(String(text.split(' ').at(-1)));
  const terminal = recordingTerminal({ ...options, folder, onPrint });
  const signals = new EventEmitter();
  const logged: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) });
  const ended = runGateway(config, {
    isDemo: false,
    terminal,
    log,
    stop: { source: signals },
    onReady,
    exit: () => {},
  });

  const stop = () => {
    signals.emit('SIGTERM', 'SIGTERM');
    return ended;
  };
  return { terminal, logged, signals, ended, stop, listening: received.promise };
}
