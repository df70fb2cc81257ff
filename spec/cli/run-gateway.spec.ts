// The foreground run in this process, with signals that are only told. Whole programs are in spec/journeys.

import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { pino } from 'pino';
import * as assert from 'uvu/assert';
import { UsageError } from '../../src/cli/failures.ts';
import { packageVersion } from '../../src/cli/package-version.ts';
import { runGateway } from '../../src/cli/run-gateway.ts';
import { loadConfig } from '../../src/config.ts';
import { suite } from '../helpers/suite.ts';
import { type RecordingTerminal, recordingTerminal } from './recording-terminal.ts';

const test = suite('run gateway');

test('says where it listens, serves, and ends in order after a signal', async () => {
  const { ended, terminal, signals, listening } = run({ port: '0' });
  const url = await listening;
  assert.is((await fetch(`${url}/readyz`)).status, 200);
  signals.emit('SIGTERM', 'SIGTERM');
  assert.is(await ended, 0);
  assert.equal(terminal.printed, [
    `stagedoor ${packageVersion()} listening on ${url}`,
    'stopping after SIGTERM: calls in flight have 25 s; a second signal stops at once',
  ]);
  assert.equal(terminal.complaints, []);
});

test('ends with exit code 1 after a defect', async () => {
  const { ended, logged, signals, listening } = run({ port: '0' });
  await listening;
  signals.emit('uncaughtException', new Error('a defect on purpose'));
  assert.is(await ended, 1);
  assert.match(logged.join(''), /"level":60,.*a defect on purpose/);
});

test('warns when everybody on the network may use it', async () => {
  const { ended, logged, signals, listening, terminal } = run({ port: '0', host: '0.0.0.0' });
  await listening;
  signals.emit('SIGTERM', 'SIGTERM');
  await ended;
  assert.match(
    String(terminal.printed[0]),
    / listening on 0\.0\.0\.0:(\d+) \(http:\/\/127\.0\.0\.1:\1 here\)$/,
  );
  assert.match(logged.join(''), /"level":40,.*"msg":"everyone who can reach 0\.0\.0\.0 may use and change/);
});

test('turns a port or a registry that cannot be used into a usage error', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  for (const flags of [{ port: String(port) }, { port: '0', 'registry-file': 'nothing-is-here.json' }]) {
    const { ended, signals } = run(flags);
    assert.instance(await ended.catch((reason: unknown) => reason), UsageError);
    assert.equal(signals.eventNames(), [], 'signals are given back');
  }
  server.close();
});

test.run();

function run(flags: Record<string, string>) {
  const terminal = recordingTerminal();
  const config = loadConfig({
    flags: { host: '127.0.0.1', ...flags },
    env: {},
    cwd: tmpdir(),
    readFile: () => undefined,
  });
  const heard = Promise.withResolvers<string>();
  const watched: RecordingTerminal = {
    ...terminal,
    print: (text) => {
      terminal.print(text);
      heard.resolve(String(text.split(' ').at(-1)));
    },
  };
  const signals = new EventEmitter();
  const logged: string[] = [];
  const log = pino({}, { write: (line: string) => void logged.push(line) });
  const ended = runGateway(config, {
    isDemo: false,
    terminal: watched,
    log,
    stop: { source: signals },
    exit: () => {},
  });

  return { terminal, logged, signals, ended, listening: heard.promise };
}
