// Every example of a help text is typed into a shell, and succeeds. Accounts, instances and files that it needs are created
// first. Addresses of other machines are replaced by local servers, and system folders by local ones.

import { spawn } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { COMMANDS } from '../../../src/cli/commands/index.ts';
import { startFakeEngine } from '../../helpers/containers/fake-engine.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { freshDatabase, postgresql } from '../../helpers/services/services.ts';
import { suite } from '../../helpers/suite.ts';
import { type Replacements, Shell } from './shell.ts';

// Over 130 programs start one after the other: 74 s on two quiet cores, 114 s beside another file of specs.
const test = suite('journey: the examples of the help texts', { timeoutMs: 600_000 });
const PACKAGES = fileURLToPath(new URL('../../../node_modules', import.meta.url));
const SERVER = join(PACKAGES, '.bin/mcp-server-everything');
const PASSWORD = 'correct horse battery staple';
/** These need a browser and a consent: specs in spec/cli/commands run them. */
const NEEDS_CONSENT = /^(grant revoke|connection (add|confirm|remove)|gateway login --(sso|device))/;
const examples = COMMANDS.flatMap((command) => command.examples ?? []).filter(
  (example) => !NEEDS_CONSENT.test(example),
);
/**
 * `doctor` ends with 1 where it finds a fault: the server of most examples answers an unknown session with 400 instead of 404,
 * and that of `npx` is slow to start on a busy machine.
 */
const FAULTS: readonly (readonly [pattern: RegExp, named: string])[] = [
  [/^doctor (everything|http:)/, 'session-status'],
  [/^doctor -- npx/, 'slow-start'],
];
const isStart = (example: string) => /^gateway start(?!.*--background)/.test(example);
const isOfDatabase = (example: string) => example.startsWith('db ');
const SEARCH = 'stagedoor instance register search --wait 20 --endpoint http://127.0.0.1:9000/mcp --id';
const LOGIN = 'stagedoor gateway login admin --password - < password.txt';

const INITIALIZE = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'spec', version: '1.0.0' },
  },
});
/** The fingerprints of the sessions of that client; others may be open. */
const FINGERPRINTS = "stagedoor session list | grep 'spec 1\\.0\\.0' | grep -o '^[0-9a-f]\\{12\\}'";
/** A client of the bridge opens a session, and is killed without ending it. */
const OPEN_SESSION = `mkfifo in; stagedoor bridge everything < in > /dev/null & exec 3> in; cat initialize.json >&3; for i in $(seq 100); do ${FINGERPRINTS} && break; sleep 0.1; done; kill -9 $!; exec 3>&-`;

const IMPORTED = `echo '{"mcpServers":{"docs":{"url":"https://mcp.example.com"}}}' > mcp.json`;

/** Lines to type before an example: those of every pattern that matches it. */
const BEFORE: readonly (readonly [pattern: RegExp, line: string])[] = [
  [/^gateway start --background/, 'stagedoor gateway stop'],
  [/--state-dir/, 'mkdir -p /var/lib/stagedoor'],
  [/^gateway restart --state-dir/, 'stagedoor gateway stop'],
  [
    /^gateway (stop|restart) --state-dir/,
    'stagedoor gateway start --background --port 0 --state-dir /var/lib/stagedoor',
  ],
  // The examples before it stop the gateway.
  [/^gateway restart$/, 'stagedoor gateway start --background'],
  [
    /^gateway status$/,
    'stagedoor gateway stop --state-dir /var/lib/stagedoor; stagedoor gateway start --background',
  ],
  [/search-1|^(gateway stats|instance list) .*--template search/, `${SEARCH} search-1`],
  [
    /^template delete-settings/,
    `${SEARCH} search-1; for id in $(stagedoor instance list --json | grep -o '"search-[^"]*"' | tr -d '"'); do stagedoor instance deregister search $id; done`,
  ],
  [/^session end/, OPEN_SESSION],
  [/^node resume/, 'stagedoor node drain local'],
  [/^db status --database/, 'stagedoor db migrate --database postgresql://gateway@db.example.com/stagedoor'],
  // The login of the admin ended by a logout and by a new password.
  [/^(instance list$|user (create ada|set-password ada|link))/, LOGIN],
  [/^user create ada/, 'stagedoor user delete ada'],
  [/^user create ci/, 'stagedoor user delete ci'],
  [/^user delete ada/, 'stagedoor user create ada --password - < password.txt'],
  [/^user unlink ada/, 'stagedoor user link ada --issuer https://login.example.com --subject 248289761001'],
  [
    /^view (show|set|delete|preview|tools|approve)/,
    `echo '{"id":"support","from":[{"template":"search"}]}' > support.yaml; stagedoor view set support.yaml`,
  ],
  [/^template (set|tools|approve) search/, `${SEARCH} search-1`],
  [/^template (import|delete)/, IMPORTED],
  [/^template delete/, 'stagedoor template import mcp.json --yes'],
  [/^template (validate|add)/, 'stagedoor template init search --command "node server.js" --into drafts'],
];

/** Examples that ask for a password at a terminal, and those that run until Ctrl-C. */
const ASKS =
  /^(gateway login admin|user create ada --role admin|user set-password \w+)( --local| --url \S+)?$/;
const GOES_ON = / (-f|--follow|--watch)( |$)/;

test.needs(process.platform === 'linux', 'the examples are typed into a POSIX shell, some at a terminal')(
  'all succeed',
  async () => {
    const [gatewayPort, serverPort] = [String(await freePort()), String(await freePort())];
    const server = spawn(process.execPath, [SERVER, 'streamableHttp'], {
      env: { ...process.env, PORT: serverPort },
      stdio: 'ignore',
    });
    const service = await postgresql();
    const database = service.url === undefined ? undefined : await freshDatabase(service);
    const engine = await startFakeEngine();
    const meant: Replacements = [
      ['--port 9000', '--port 0'],
      ['--registry http://127.0.0.1:9000', `--registry http://127.0.0.1:${gatewayPort}`],
      ['127.0.0.1:9000', `127.0.0.1:${serverPort}`],
      ['https://mcp.example.com', `http://127.0.0.1:${serverPort}/mcp`],
      ['https://gateway.example.com', `http://127.0.0.1:${gatewayPort}`],
      ['http://gateway.example:8080', `http://127.0.0.1:${gatewayPort}`],
      ['postgresql://gateway@db.example.com/stagedoor', database?.url ?? 'sqlite:///other.db'],
      ['postgresql://127.0.0.1/stagedoor', database?.url ?? 'sqlite:///other.db'],
      ['/var/lib/stagedoor', '$HOME/state'],
      [
        'build-1f0c',
        `$(stagedoor client list --json | grep -o '"client_id": "[^"]*' | cut -d'"' -f4 | head -n 1)`,
      ],
      ['0123456789ab', `$(${FINGERPRINTS} | head -n 1)`],
      ['1f2e3d4c5b6a7988', '$(stagedoor api-key create short-lived | cut -d_ -f2)'],
    ];
    const ended: Record<string, string> = {};
    const typeAll = async (chosen: readonly string[], before: readonly string[] = []): Promise<void> => {
      const env = {
        GATEWAY_PORT: gatewayPort,
        GATEWAY_ADMIN_PASSWORD: PASSWORD,
        DOCKER_HOST: engine.address,
        // `template search` sends no credentials.
        GATEWAY_REGISTRY_PUBLIC: 'true',
        // Asked at a sign-in only.
        GATEWAY_AUTH_PROVIDERS: JSON.stringify([
          {
            ...{ issuer: 'https://login.example.com', client_id: 'stagedoor', client_secret: 'unused' },
            ...{ label: 'Example', everyone: { role: 'user' } },
          },
        ]),
      };
      const shell = await Shell.open(chosen.some(isStart) ? { ...env, GATEWAY_PORT: '0' } : env, meant);
      try {
        await prepare(shell.folder);
        for (const line of before) await shell.type(line);
        for (const example of chosen) {
          for (const [pattern, line] of BEFORE) if (pattern.test(example)) await shell.type(line);
          const { status, text } = await shell.type(lineOf(example));
          const isFaultNamed =
            status === 1 &&
            FAULTS.some(([pattern, named]) => pattern.test(example) && text.includes(`${named}:`));
          if (status !== 0 && !isFaultNamed) ended[example] = `${status}: ${text}`;
        }
      } finally {
        await shell.close();
      }
    };
    try {
      await Promise.all([
        typeAll(examples.filter(isStart)),
        typeAll(examples.filter(isOfDatabase), ['stagedoor db migrate']),
        typeAll(
          examples.filter((example) => !isStart(example) && !isOfDatabase(example)),
          [
            'mkdir -p ~/.local/share/bash-completion/completions ~/.zfunc ~/.config/fish/completions',
            'stagedoor gateway start --background',
            LOGIN,
            `${SEARCH.replace('search', 'everything')} everything-1`,
          ],
        ),
      ]);
    } finally {
      await database?.drop();
      await engine.close();
      server.kill('SIGKILL');
    }
    assert.equal(ended, {});
  },
);

test.run();

/** The files that the examples name. */
async function prepare(folder: string): Promise<void> {
  const registry = JSON.stringify({ servers: {} });
  for (const name of ['shared', 'data', 'templates']) await mkdir(join(folder, name));
  await writeFile(join(folder, 'password.txt'), `${PASSWORD}\n`);
  await writeFile(join(folder, 'token.txt'), 'a-token\n', { mode: 0o600 });
  await writeFile(join(folder, 'servers.json'), registry);
  await writeFile(join(folder, 'mcp.json'), '{ "mcpServers": {} }');
  await writeFile(join(folder, 'gateway.yaml'), 'grace_seconds: 5\n');
  await writeFile(join(folder, 'initialize.json'), `${INITIALIZE}\n`);
  // In a new home, npx would download the server for a minute or longer.
  await symlink(PACKAGES, join(folder, 'node_modules'));
}

/** The line to type: a server is ended when it listens, an endless command after its first output or after 5 s. */
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
      ...(example.startsWith('gateway login') ? [] : [answer('Repeat the password')]),
    ];
    return `: > tty.log; { ${answers.join('; ')}; sleep 1; } | script -qefc '${line}' tty.log`;
  }
  if (example.endsWith(' --watch')) {
    const ctrlC = `for i in $(seq 100); do grep -q 'Ctrl-C ends' tty.log && break; sleep 0.1; done; printf '\\003'`;
    // A shell in between would end by the signal.
    return `: > tty.log; { ${ctrlC}; sleep 1; } | script -qefc 'exec ${line}' tty.log`;
  }
  if (GOES_ON.test(example)) return `timeout --preserve-status -s INT 5 ${line}`;
  return line;
}
