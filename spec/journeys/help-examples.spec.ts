// Every example that a help text shows is typed into a shell, and succeeds. What it needs is there first: accounts, instances,
// files. Addresses of other machines stand for servers here, folders of the system for folders here.

import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { COMMANDS } from '../../src/cli/commands/index.ts';
import { freePort } from '../../src/cli/free-port.ts';
import { freshDatabase, postgresql } from '../helpers/services.ts';
import { Shell } from '../helpers/shell.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('journey: the examples of the help texts', { timeoutMs: 240_000 });
const SERVER = fileURLToPath(new URL('../../node_modules/.bin/mcp-server-everything', import.meta.url));
const PASSWORD = 'correct horse battery staple';
const examples = COMMANDS.flatMap((command) => command.examples ?? []);
const isStart = (example: string) => /^gateway start(?!.*--background)/.test(example);
const isOfDatabase = (example: string) => example.startsWith('db ');

/** What has to be true before an example, as lines to type; those of every pattern that fits. */
const BEFORE: readonly (readonly [pattern: RegExp, line: string])[] = [
  [/^gateway start --background/, 'stagedoor gateway stop'],
  [/--state-dir/, 'mkdir -p /var/lib/stagedoor'],
  [
    /^gateway stop --state-dir/,
    'stagedoor gateway start --background --port 0 --state-dir /var/lib/stagedoor',
  ],
  [/^gateway (logs|restart$)/, 'stagedoor gateway start --background'],
  [
    /search-1/,
    'stagedoor gateway register search --id search-1 --wait 20 --endpoint http://127.0.0.1:9000/mcp',
  ],
  [
    /^gateway delete-template/,
    'stagedoor gateway register search --id search-1 --endpoint http://127.0.0.1:9000/mcp',
  ],
  [
    /^gateway delete-template/,
    'for id in $(stagedoor gateway list --json | grep -o \'"id": *"search-[^"]*"\' | cut -d\'"\' -f4); do stagedoor gateway deregister search $id; done',
  ],
  // A new password of the admin has ended its login.
  [/^gateway (set-password ada|create-api-key)/, 'stagedoor gateway login admin --password - < password.txt'],
  [/^gateway create-user ada/, 'stagedoor gateway delete-user ada'],
  [/^gateway create-user ci/, 'stagedoor gateway delete-user ci'],
];

/** Examples that ask for a password at a terminal, and those that go on until Ctrl-C. */
const ASKS = /^gateway (login admin|create-user ada --role admin|set-password \w+)( --url \S+)?$/;
const GOES_ON = / (-f|--follow|--watch)$/;

test.needs(process.platform === 'linux', 'the examples are typed into a POSIX shell, some at a terminal')(
  'each does what it says',
  async () => {
    const [gatewayPort, serverPort] = [String(await freePort()), String(await freePort())];
    const server = spawn(process.execPath, [SERVER, 'streamableHttp'], {
      env: { ...process.env, PORT: serverPort },
      stdio: 'ignore',
    });
    const service = await postgresql();
    const database = service.url === undefined ? undefined : await freshDatabase(service);
    const gateway = `http://127.0.0.1:${gatewayPort}`;
    const shell = await Shell.open({ GATEWAY_PORT: gatewayPort, GATEWAY_ADMIN_PASSWORD: PASSWORD }, [
      ['--port 9000', '--port 0'],
      ['127.0.0.1:9000', `127.0.0.1:${serverPort}`],
      ['https://mcp.example.com', `http://127.0.0.1:${serverPort}/mcp`],
      ['https://gateway.example.com', gateway],
      ['postgresql://gateway@db.example.com/stagedoor', database?.url ?? 'sqlite:///other.db'],
      ['sqlite:///data/gateway.db', 'sqlite:///data/gateway.db'],
      ['/var/lib/stagedoor', '/tmp/state'],
    ]);
    const ended: Record<string, string> = {};
    const run = async (example: string): Promise<void> => {
      for (const [pattern, line] of BEFORE) if (pattern.test(example)) await shell.type(line);
      const { status, text } = await shell.type(lineOf(example));
      if (status !== 0) ended[example] = `${status}: ${text}`;
    };
    try {
      await prepare(shell.folder);
      for (const example of examples.filter(isStart)) await run(example);
      await shell.type('stagedoor gateway start --background');
      await shell.type('stagedoor gateway login admin --password - < password.txt');
      for (const example of examples.filter((each) => !isStart(each) && !isOfDatabase(each)))
        await run(example);
      await shell.type('stagedoor gateway stop');
      for (const example of examples.filter(isOfDatabase)) await run(example);
    } finally {
      await shell.close();
      await database?.drop();
      server.kill('SIGKILL');
    }
    assert.equal(ended, {});
  },
);

test.run();

/** The files that the examples name. */
async function prepare(folder: string): Promise<void> {
  const registry = JSON.stringify({ servers: {} });
  for (const name of ['shared', 'data']) await mkdir(join(folder, name));
  await writeFile(join(folder, 'password.txt'), `${PASSWORD}\n`);
  await writeFile(join(folder, 'token.txt'), 'a-token\n', { mode: 0o600 });
  await writeFile(join(folder, 'servers.json'), registry);
  await writeFile(join(folder, 'mcp.json'), '{ "mcpServers": {} }');
  await writeFile(join(folder, 'gateway.yaml'), 'grace_seconds: 5\n');
}

/** What is typed for an example: one that serves is ended when it listens, one that goes on after a second. */
function lineOf(example: string): string {
  const line = `stagedoor ${example}`;
  if (isStart(example)) {
    return `: > start.log; ${line} > start.log 2>&1 & p=$!; for i in $(seq 300); do grep -q 'listening on' start.log && break; sleep 0.1; done; kill $p; wait $p || { cat start.log; false; }`;
  }
  if (ASKS.test(example)) {
    const answer = (question: string) =>
      `for i in $(seq 100); do grep -q '${question}' tty.log && break; sleep 0.1; done; printf '${PASSWORD}\\r'`;
    const answers = [
      answer('assword'),
      ...(example.startsWith('gateway login') ? [] : [answer('Once more')]),
    ];
    return `: > tty.log; { ${answers.join('; ')}; sleep 1; } | script -qefc '${line}' tty.log`;
  }
  if (GOES_ON.test(example)) return `timeout --preserve-status -s INT 2 ${line}`;
  return line;
}
