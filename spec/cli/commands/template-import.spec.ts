// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of clients
// Import of the files of other clients and of server.json, against a real gateway.

import { execFileSync, spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import * as assert from 'uvu/assert';
import { readImported } from '../../../src/templates/imported.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { complaint, gatewayFor, printed } from './against-gateway.ts';

const test = suite('template import', { timeoutMs: 90_000 });
const folder = folderOfEach(test);
const gateway = gatewayFor(test);

const run = (file: object | string, line: string, options: object = {}) => {
  const path = folder('mcp.json');
  writeFileSync(path, typeof file === 'string' ? file : JSON.stringify(file));
  return gateway.runAt({ folder: folder(), ...options }, `template import ${path} ${line}`.trim());
};
const definitionOf = async (template: string) =>
  Object(await (await fetch(`${gateway.url}/gateway/templates/${template}/definition`)).json());
const instancesOf = (template: string) =>
  gateway.server.gateway.servers(template).map(({ definition }) => definition);

const TWELVE = Object.fromEntries(
  Array.from({ length: 12 }, (_, index) => [
    `Server ${index + 1}`,
    index > 1
      ? { url: `http://127.0.0.1:${index + 1}/mcp`, headers: { Authorization: `Bearer secret-${index}` } }
      : {
          command: process.execPath,
          args: ['-e', '0', `word-${index}`],
          env: { API_KEY: `secret-${index}` },
        },
  ]),
);

test('twelve servers become templates and instances, and stay when they are unchanged', async () => {
  const out = await printed(run({ mcpServers: TWELVE }, '--yes'));
  assert.match(out, /^server-1 +Server 1 +new +\S+node -e 0 word-0/m);
  assert.is(out.match(/is stored, server-\d+-1 starts/g)?.length, 12);
  assert.not.match(out, /secret-/);
  const [program] = instancesOf('server-1');
  assert.equal([program?.env, program?.secretEnv], [{ API_KEY: 'secret-0' }, ['API_KEY']]);
  assert.equal(instancesOf('server-3')[0]?.headers, { Authorization: 'Bearer secret-2' });
  const definition = await definitionOf('server-1');
  assert.equal(definition.config_schema.properties.API_KEY, {
    ...{ type: 'string', description: 'Variable API_KEY.', env_mapping: 'API_KEY', sensitive: true },
  });
  assert.not.match(JSON.stringify([definition, await definitionOf('server-3')]), /secret-/);
  const before = instancesOf('server-1');
  const again = await printed(run({ mcpServers: TWELVE }, '--yes'));
  assert.is(again.match(/ is unchanged/g)?.length, 12);
  assert.equal(instancesOf('server-1'), before);
  const changed = { ...TWELVE, 'Server 1': { ...TWELVE['Server 1'], env: { API_KEY: 'other-secret' } } };
  const third = await printed(run({ mcpServers: changed }, '--yes'));
  assert.is(third.match(/ is unchanged/g)?.length, 11);
  assert.equal(instancesOf('server-1')[0]?.env, { API_KEY: 'other-secret' });
});

test('says which programs do not exist', async () => {
  const mcpServers = {
    here: { command: process.execPath, args: ['-e', '0'] },
    gone: { command: 'no-such-program-there' },
    lost: { command: process.execPath, args: ['-e', '0'], cwd: '/no/such/folder' },
  };
  const { code, out, err } = await run({ mcpServers }, '--yes');
  assert.is(code, 0, err);
  assert.match(out, 'the template gone is stored, gone-1 starts');
  assert.match(
    err,
    /gone-1 could not be started: ENOENT, .*; install the program where the gateway runs, or correct the command/,
  );
  assert.match(err, /lost-1 .*folder that can be entered; make it where the gateway runs, or correct "cwd"/);
  assert.not.match(err, 'here-1');
});

test('a program that exists, and is still starting, is not waited for', async () => {
  const looks: string[] = [];
  const look = (message: unknown) => {
    const { url } = Object(message).request;
    if (url === '/gateway/registry') looks.push(url);
  };
  subscribe('stagedoor:request', look);
  try {
    const slow = { command: process.execPath, args: ['-e', 'setInterval(() => {}, 1_000)'] };
    const { err } = await run({ mcpServers: { slow } }, '--yes');
    assert.is(err, '');
  } finally {
    unsubscribe('stagedoor:request', look);
  }
  assert.ok(looks.length <= 4, `${looks.length} lists of all instances`);
});

test('shows commands first, then asks; without a terminal it needs --yes or --dry-run', async () => {
  const file = { mcpServers: { asked: { command: 'node', args: ['server.js', '--token', 'hunter22'] } } };
  const refused = await run(file, '');
  assert.equal([refused.code, refused.out], [2, '']);
  assert.match(refused.err, /no terminal to ask at: --yes imports/);
  const dry = await printed(run(file, '--dry-run'));
  assert.match(dry, /asked +asked +new +node server\.js --token \*\*\*/);
  const no = await run(file, '', { answers: [], line: 'n' });
  assert.is(no.code, 1);
  assert.match(no.out, /node server\.js --token \*\*\*/);
  assert.not.match(no.out + no.err, /hunter22/);
  assert.not.ok(gateway.server.gateway.hasTemplate('asked'));
  assert.is((await run(file, '', { answers: [], line: 'y' })).code, 0);
  assert.equal((await definitionOf('asked')).args, ['server.js', '--token']);
  assert.equal(instancesOf('asked')[0]?.args, ['server.js', '--token', 'hunter22']);
});

test('shows what makes another program of a command: its variables, by name, and its folder', async () => {
  const env = { NODE_OPTIONS: '--import=data:text/javascript,0', API_KEY: 'hunter22' };
  const file = { mcpServers: { hidden: { command: 'npx', args: ['-y', 'known'], env, cwd: '/srv/x' } } };
  const { out } = await run(file, '', { answers: [], line: 'n' });
  assert.match(out, /npx -y known with NODE_OPTIONS, API_KEY in \/srv\/x/);
  assert.not.match(out, /hunter22|data:/);
  const registered = {
    ...{ name: 'io.github.acme/known', description: 'Known.', version: '1.0.0' },
    packages: [
      {
        ...{ registryType: 'npm', identifier: 'known', version: '1.0.0', transport: { type: 'stdio' } },
        environmentVariables: [
          { name: 'NODE_OPTIONS', value: env.NODE_OPTIONS },
          { name: 'npm_config_registry', default: 'https://evil.example' },
          { name: 'KNOWN_KEY', isRequired: true, isSecret: true },
        ],
      },
    ],
  };
  const shown = await run(registered, '', { answers: [], line: 'n' });
  assert.match(shown.out, /known@1\.0\.0 with NODE_OPTIONS, npm_config_registry +KNOWN_KEY/);
  assert.not.match(shown.out, /data:|evil/);
});

test('servers and inputs of VS Code: each input is asked for once', async () => {
  const file = `{
    // comments and trailing commas are allowed
    "inputs": [{ "type": "promptString", "id": "key", "description": "Key of the service", "password": true }],
    "servers": {
      "one": { "type": "stdio", "command": "node", "args": ["one.js"], "env": { "SERVICE": "\${input:key}" }, "cwd": "\${workspaceFolder}" },
      "two": { "type": "http", "url": "http://127.0.0.1:9/mcp", "headers": { "X-Key": "\${input:key}", "X-User": "\${env:WHO}" } },
    },
  }`;
  const outcome = await run(file, '--yes', { answers: ['pressed'], env: { WHO: 'ada' } });
  assert.is(outcome.code, 0, outcome.err);
  assert.match(outcome.out, /^two +two +new +http:\/\/127\.0\.0\.1:9\/mcp +input:key, env:WHO$/m);
  const [one] = instancesOf('one');
  assert.equal([one?.env, one?.secretEnv, one?.workingDir], [{ SERVICE: 'pressed' }, ['SERVICE'], folder()]);
  assert.equal(instancesOf('two')[0]?.headers, { 'X-Key': 'pressed', 'X-User': 'ada' });
  const failed = await run(file.replace('one.js', 'uno.js').replace('127.0.0.1:9', '127.0.0.1:8'), '--yes');
  assert.is(failed.code, 1);
  assert.match(failed.err, /one: not imported: it needs a value for key: write it into the file/);
});

test('the workspace of a file in the folder of an editor is the folder above it', async () => {
  mkdirSync(folder('server'));
  for (const editor of ['.vscode', '.cursor']) {
    const name = editor.slice(1);
    const server = { command: 'node', args: ['${workspaceFolder}/x', '${workspaceFolderBasename}'] };
    const servers = { [name]: { ...server, cwd: 'server' } };
    mkdirSync(folder(editor));
    writeFileSync(folder(editor, 'mcp.json'), JSON.stringify({ servers }));
    const options = { folder: folder(editor) };
    const { servers: rows } = JSON.parse(
      await printed(gateway.runAt(options, 'template import mcp.json --yes --json')),
    );
    assert.equal(rows[0].needs, []);
    const [{ args, workingDir } = {}] = instancesOf(name);
    assert.equal([args, workingDir], [[folder('x'), basename(folder())], folder('server')]);
  }
});

test('no server gets the secret that was typed for another one', async () => {
  const server = (name: string) => ({
    command: 'node',
    args: [`${name}.js`],
    env: { API_KEY: '<your key>' },
  });
  const file = { mcpServers: { mine: server('mine'), theirs: server('theirs') } };
  const answers = ['key of mine', 'key of theirs'];
  const { code, err } = await run(file, '--yes', { answers: [...answers] });
  assert.is(code, 0, err);
  const keys = ['mine', 'theirs'].map((name) => instancesOf(name)[0]?.env.API_KEY);
  assert.equal(keys, answers);
});

test('no server gets the key of the command line or a secret of the gateway', async () => {
  const env = {
    GATEWAY_SECRET_KEY: 'k'.repeat(40),
    STAGEDOOR_OLD_KEY: 'sd_own',
    mcp_gateway_x: 'own',
    OTHER: 'mine',
  };
  const mcpServers = {
    secret: { url: 'http://127.0.0.1:9/${GATEWAY_SECRET_KEY}' },
    key: { url: 'http://127.0.0.1:9/mcp', headers: { 'X-Key': '${env:STAGEDOOR_OLD_KEY}' } },
    setting: { command: 'node', args: ['${mcp_gateway_x:-none}'] },
    other: { command: 'node', args: ['${OTHER}'] },
  };
  const { code, out, err } = await run({ mcpServers }, '--yes', { env });
  assert.is(code, 1);
  assert.is(
    err.match(/not imported: "\$\{[^}]+\}" is for the gateway itself, not for a server/g)?.length,
    3,
    err,
  );
  assert.not.match(out + err, /kkk|sd_own|own\b/);
  assert.equal(instancesOf('other')[0]?.args, ['mine']);
});

test('one entry that fails does not stop the others, and the exit code tells', async () => {
  const file = {
    mcpServers: {
      broken: { args: [] },
      denied: { url: 'http://169.254.169.254/mcp' },
      exposed: { command: 'cat', args: ['/proc/self/environ'] },
      off: { command: 'node', disabled: true },
      'Grüße & Wetter': { command: 'node', args: ['good.js'] },
    },
  };
  const { code, out, err } = await run(file, '--yes');
  assert.is(code, 1);
  assert.match(out, /Grüße & Wetter: the template gru-e-wetter is stored, gru-e-wetter-1 starts/);
  assert.match(err, /^broken: not imported: has neither "command" nor "url"$/m);
  assert.match(err, /^denied: not imported: The address 169\.254\.169\.254 lies in a denied network/m);
  assert.match(err, /^exposed: not imported: .*\/proc/m);
  assert.match(out, /^off: skipped: is disabled in the file$/m);
  for (const name of ['denied', 'exposed']) assert.not.ok(gateway.server.gateway.hasTemplate(name), name);
  const { servers } = JSON.parse((await run(file, '--yes --json')).out);
  assert.equal(
    servers.map(({ name, outcome }: Record<string, string>) => [name, outcome]),
    [
      ['denied', 'failed'],
      ['exposed', 'failed'],
      ['Grüße & Wetter', 'unchanged'],
      ['broken', 'failed'],
      ['off', 'skipped'],
    ],
  );
});

test('entries that are disabled are skipped, which is no failure', async () => {
  const file = {
    mcpServers: {
      kept: { command: 'node', args: ['kept.js'] },
      off: { command: 'node', disabled: true, envFile: '.env' },
      'not-on': { command: 'node', enabled: false },
    },
  };
  const lines = /^off: skipped: is disabled in the file\nnot-on: skipped: is disabled in the file$/m;
  assert.match(await printed(run(file, '--dry-run')), lines);
  const out = await printed(run(file, '--yes'));
  assert.match(out, /^kept: the template kept is stored, kept-1 starts$/m);
  assert.match(out, lines);
  const { servers } = JSON.parse(await printed(run(file, '--yes --json')));
  assert.equal(servers.at(-1), { name: 'not-on', outcome: 'skipped', reason: 'is disabled in the file' });
});

test('a name that another server has gets a number, in the file and at the gateway', async () => {
  await gateway.server.gateway.register('mine', { endpoint: 'http://127.0.0.1:1' });
  const file = {
    mcpServers: { Mine: { url: 'http://127.0.0.1:2/mcp' }, 'mine!': { url: 'http://127.0.0.1:3/mcp' } },
  };
  const out = await printed(run(file, '--yes'));
  assert.match(out, /Mine: the template mine-2 is stored/);
  assert.match(out, /mine!: the template mine-3 is stored/);
  assert.match(await printed(run(file, '--yes')), /Mine: mine-2 is unchanged\nmine!: mine-3 is unchanged/);
  const filed = { mcpServers: { time: { command: process.execPath, args: ['-e', '0'] } } };
  assert.match(await printed(run(filed, '--yes')), /time: the template time-2 is stored/);
  // The folder of templates has this server already.
  const package_ = '@modelcontextprotocol/server-memory';
  const same = { mcpServers: { memory: { command: 'npx', args: ['-y', package_] } } };
  assert.match(await printed(run(same, '--yes')), /memory: memory-1 starts in the template memory/);
  assert.equal(instancesOf('memory')[0]?.args, ['-y', package_]);
  assert.match(await printed(run(same, '--yes')), /memory: memory is unchanged/);
});

test('server.json: packages and remotes become templates with settings, and no instances', async () => {
  const file = {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    ...{ name: 'io.github.acme/weather', title: 'Weather', description: 'Forecasts.', version: '1.2.3' },
    packages: [
      {
        ...{
          registryType: 'npm',
          identifier: '@acme/weather',
          version: '1.2.3',
          transport: { type: 'stdio' },
        },
        packageArguments: [
          { type: 'positional', value: 'serve' },
          { type: 'named', name: '--units', default: 'metric', choices: ['metric', 'imperial'] },
          { type: 'positional', valueHint: 'city', isRequired: true, isRepeated: true },
        ],
        environmentVariables: [
          { name: 'WEATHER_KEY', description: 'Key.', isRequired: true, isSecret: true },
          {
            name: 'WEATHER_HOST',
            value: 'https://{region}.acme.example',
            variables: { region: { default: 'eu' } },
          },
        ],
      },
      {
        ...{ registryType: 'oci', identifier: 'docker.io/acme/weather:1.2.3', transport: { type: 'stdio' } },
        runtimeArguments: [{ type: 'named', name: '--network', value: 'none' }],
        environmentVariables: [{ name: 'WEATHER_KEY', isSecret: true }],
      },
      { registryType: 'pypi', identifier: 'acme-weather', version: '1.2.3', transport: { type: 'stdio' } },
      { registryType: 'mcpb', identifier: 'https://a.example/w.mcpb', transport: { type: 'stdio' } },
    ],
    remotes: [
      {
        ...{ type: 'streamable-http', url: 'https://{tenant}.acme.example/mcp' },
        variables: { tenant: { default: 'main' } },
        headers: [
          {
            ...{ name: 'Authorization', value: 'Bearer {token}', isRequired: true },
            variables: { token: { isSecret: true } },
          },
        ],
      },
    ],
  };
  const { code, out, err } = await run(file, '--yes');
  assert.is(code, 1);
  assert.match(err, /io\.github\.acme\/weather \(mcpb\): not imported: packages of "mcpb" are not started/);
  assert.match(
    out,
    /weather-npm +\S+ \(npm\) +new +npx -y @acme\/weather@1\.2\.3 serve +city, WEATHER_KEY|WEATHER_KEY, city/,
  );
  const npm = await definitionOf('weather-npm');
  assert.equal(
    [npm.name, npm.version, npm.command, npm.args, npm.environment, npm.config_schema.required],
    [
      ...['Weather', '1.2.3', 'npx', ['-y', '@acme/weather@1.2.3', 'serve']],
      ...[{ WEATHER_HOST: 'https://eu.acme.example' }, ['WEATHER_KEY', 'city']],
    ],
  );
  assert.equal(npm.config_schema.properties.units, {
    ...{ type: 'string', enum: ['metric', 'imperial'], default: 'metric', command_arg: '--units' },
  });
  const { args } = await definitionOf('weather-oci');
  assert.equal(args.join(' '), 'run --rm -i --network none -e WEATHER_KEY docker.io/acme/weather:1.2.3');
  assert.equal((await definitionOf('weather-pypi')).args, ['acme-weather@1.2.3']);
  const remote = await definitionOf('weather-remote');
  assert.equal([remote.transport, remote.endpoint], ['http', 'https://main.acme.example/mcp']);
  assert.equal(remote.config_schema.properties.Authorization, {
    ...{ type: 'string', description: 'In the form: Bearer {token}', sensitive: true },
    header_mapping: 'Authorization',
  });
  assert.equal(instancesOf('weather-npm'), []);
  assert.match(await printed(run({ ...file, packages: [] }, '--yes')), /: weather-remote is unchanged/);
});

test('a file of another kind is refused in a line', async () => {
  for (const [file, reason] of [
    ['{"mcpServers": {', /is not JSON: close brace expected in line 1/],
    ['[]', /is not a JSON object/],
    ['{"other": {}}', /has none of "mcpServers"/],
    ['{"name": "weather", "packages": []}', /name: is not <namespace>\/<name>/],
  ] as const)
    assert.match(await complaint(run(file, '--yes')), reason);
  assert.match(
    await complaint(gateway.run('template import none.json --yes')),
    /none\.json cannot be read \(there is no such file\)/,
  );
});

test('secrets in words of a command are neither shown nor in the template', async () => {
  const remote = ['mcp-remote', 'https://docs.example.com/mcp'];
  const words: readonly (readonly [shown: string, ...words: string[]])[] = [
    ['docker run -e API_TOKEN=*** image', 'docker', 'run', '-e', 'API_TOKEN=hidden-1', 'image'],
    ['docker run --env=API_TOKEN=*** image', 'docker', 'run', '--env=API_TOKEN=hidden-2', 'image'],
    [
      'npx mcp-remote https://docs.example.com/mcp --header "X-Api-Key: ***"',
      'npx',
      ...remote,
      '--header',
      'X-Api-Key: hidden-3',
    ],
    [
      'npx mcp-remote https://docs.example.com/mcp --header Authorization:***',
      'npx',
      ...remote,
      '--header',
      'Authorization:hidden-4',
    ],
    ['npx mcp-remote --header=Cookie:*** x', 'npx', 'mcp-remote', '--header=Cookie:hidden-5', 'x'],
    [
      'npx mcp-remote https://docs.example.com/mcp?***',
      'npx',
      'mcp-remote',
      `${remote[1]}?id=1&api_key=hidden-6`,
    ],
    [
      'npx mcp-remote https://docs.example.com/mcp?***',
      'npx',
      'mcp-remote',
      'https://hidden-7@docs.example.com/mcp',
    ],
    ['sh -c "TOKEN=*** exec server"', 'sh', '-c', 'TOKEN=hidden-8 exec server'],
    ['npx server ***', 'npx', 'server', 'postgresql://me:hidden-9@db/x'],
    ['npx server --api-key ***', 'npx', 'server', '--api-key', 'hidden-10'],
    ['npx server ***', 'npx', 'server', 'ghp_hidden0123456789abcdefghijklmnop'],
    ['env API_KEY=*** npx server', 'env API_KEY=hidden-11 npx server'],
    [
      'sh -c "curl -H \\"Authorization: Basic ***\\" x; run"',
      'sh',
      '-c',
      'curl -H "Authorization: Basic hidden-12" x; run',
    ],
    ['npx server "{\\"apiKey\\":\\"***\\"}"', 'npx', 'server', '{"apiKey":"hidden-14"}'],
    ['npx server --token=*** ${HOME}', 'npx', 'server', '--token=hidden-13', '${HOME}'],
    ['npx server --token=${TOKEN}', 'npx', 'server', '--token=${TOKEN}'],
    ['npx server https://example.com/?key=${TOKEN}', 'npx', 'server', 'https://example.com/?key=${TOKEN}'],
  ];
  const mcpServers = Object.fromEntries(
    words.map(([, command, ...args], index) => [`hides-${index}`, { command, args }]),
  );
  const out = await printed(run({ mcpServers }, '--dry-run'));
  assert.not.match(out, /hidden/);
  for (const [index, [shown]] of words.entries())
    assert.ok(out.includes(`hides-${index}`) && out.includes(` ${shown}`), `${shown}\n${out}`);
  const { servers } = readImported(JSON.stringify({ mcpServers }), 'mcp.json');
  assert.not.match(JSON.stringify(servers.map(({ definition }) => definition)), /hidden/);
  assert.equal(servers[0]?.instance?.args, ['run', '-e', 'API_TOKEN=hidden-1', 'image']);
  const plain = { command: 'docker', args: ['run', 'keycloak:26', 'a=b', '--mode=x', 'https://a/?page=2'] };
  const [kept] = readImported(JSON.stringify({ mcpServers: { plain } }), 'mcp.json').servers;
  assert.equal(kept?.definition.args, plain.args);
});

test('variables whose value is a secret are marked as secret', async () => {
  const env = {
    NOTES: 'ghp_hidden0123456789abcdefghijklmnop',
    DATABASE: 'mysql://me:hidden@db',
    MODE: 'x',
    AUTHORIZATION: 'x',
  };
  const [read] = readImported(
    JSON.stringify({ mcpServers: { a: { command: 'x', env } } }),
    'mcp.json',
  ).servers;
  assert.equal(read?.instance?.secret_env_vars, ['NOTES', 'DATABASE', 'AUTHORIZATION']);
});

test('a hostile file is refused in a line, and names of prototypes are names', async () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  assert.match(
    await complaint(run(`{"mcpServers": {"a": {"command": "x", "args": ${deep}}}}`, '--yes')),
    /is nested deeper than \d+ levels/,
  );
  const named =
    '{"mcpServers": {"__proto__": {"command": "x"}, "constructor": {"url": "https://a", "type": "constructor"}}}';
  const { servers, refused } = readImported(named, 'mcp.json');
  assert.equal(
    servers.map(({ name, id, instance }) => [name, id, instance?.transport]),
    [
      ['__proto__', 'proto', undefined],
      ['constructor', 'constructor', undefined],
    ],
  );
  assert.equal(refused, []);
  const odd = { toString: null };
  const entry = { url: 'https://a', type: odd };
  await printed(run({ mcpServers: { entry }, inputs: [{ id: odd, description: odd }] }, '--dry-run'));
  const server = { name: 'a/b', description: 'd', version: '1.0.0', packages: [{ registryType: odd }] };
  assert.match((await run(server, '--dry-run')).err, 'packages of "{"toString":null}" are not started');
});

if (process.platform !== 'win32')
  test('a pipe without an end is refused after 5 MiB, and a device at once', async () => {
    const refusal = (path: string) =>
      complaint(gateway.runAt({ folder: folder() }, `template import ${path} --dry-run`));
    execFileSync('mkfifo', [folder('pipe')]);
    const program = spawn('/bin/sh', ['-c', 'exec yes > "$1"', 'sh', folder('pipe')]);
    assert.match(await refusal(folder('pipe')), 'pipe has more than 5242880 bytes');
    program.kill();
    assert.match(await refusal('/dev/zero'), '/dev/zero cannot be read (not a file or a pipe)');
  });

test.run();
