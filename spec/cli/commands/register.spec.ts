// `instance register`: its options, instances that do not become healthy, and secrets.

import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, relative } from 'node:path';
import * as assert from 'uvu/assert';
import { stdioServerPath } from '../../fixtures/programs.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { complaint, gatewayFor, printed, runCommand, startGateway } from './against-gateway.ts';

const test = suite('instance register', { timeoutMs: 90_000 });
const program = `"${process.execPath}" "${stdioServerPath}"`;
const FAR = '--endpoint http://127.0.0.1:9/mcp';
const folder = folderOfAll(test);
const gateway = gatewayFor(test);
const register = (line: string, ...words: string[]) => gateway.run(`instance register ${line}`, ...words);
const definitionOf = (template: string, id: string) =>
  gateway.server.gateway.instance(template, id).definition;

test('registers a program with its folder, environment and weight, and waits until it is healthy', async () => {
  // The home of the user may be below the folder of the commands, which is then refused as a working folder.
  const sub = relative(tmpdir(), folder('sub'));
  const options = `--working-dir ${sub}/.. --id 007 --env A=1 --env B=x=y --weight 3 --wait 20`;
  const out = await printed(register(`files ${options} --command`, program));
  const clients = `MCP clients: ${gateway.url}/mcp/files; "npx stagedoor connect files --url ${gateway.url}" shows how`;
  assert.is(out, `007 is registered in files: healthy\n${clients}`);
  const { env, weight, workingDir } = definitionOf('files', '007');
  assert.equal([env, weight, workingDir], [{ A: '1', B: 'x=y' }, 3, dirname(folder('sub'))]);
});

test('--node pins a program to a node, which alone runs it, or leaves it to any', async () => {
  const there = await printed(register('placed --id there --node elsewhere --command', program));
  assert.match(there, /^there is registered in placed: stopped\n/);
  await printed(register(`placed --id here --node ${gateway.server.gatewayId} --wait 20 --command`, program));
  const any = await register('placed --id any --node any --wait 20 --command', program);
  assert.match(any.out, /^any is registered in placed: healthy\n/);
  const nodes = ['there', 'here', 'any'].map((id) => definitionOf('placed', id).nodeId);
  assert.equal(nodes, ['elsewhere', gateway.server.gatewayId, 'any']);
  const defined = `filesystem --config folders=${folder()} --node elsewhere --json`;
  assert.is(JSON.parse(await printed(register(defined))).node_id, 'elsewhere');
  const refusal = await complaint(register(`placed --id far --node elsewhere ${FAR}`));
  assert.match(refusal, 'Only a command runs on a node');
});

test('waits only with --wait, and reports when it replaced an instance', async () => {
  const words = `twice --id one ${FAR}`;
  const { out } = await register('twice --endpoint http://127.0.0.1:9');
  assert.match(out, /^twice-[0-9a-f]{8} is registered in twice: (starting|unhealthy)\n/);
  assert.match((await register(words)).out, /^one is registered in twice: /);
  assert.match((await register(words)).out, /^one is replaced in twice: /);
});

test('removes an instance that is not healthy in time with --remove-on-failure, unless it replaced one', async () => {
  const line = `gone --id one ${FAR} --wait 1 --remove-on-failure`;
  assert.match(
    (await register(line)).err,
    /^stagedoor: one is not healthy after 1 s: .*; it is removed again$/,
  );
  await register(`gone --id one ${FAR}`);
  const second = await register(line);
  assert.equal([second.code, second.out.split(':')[0]], [1, 'one is replaced in gone']);
  assert.match(second.err, /; it stays registered$/);
  const alone = await complaint(register(`gone --id one ${FAR} --remove-on-failure`), 2);
  assert.match(alone, /--remove-on-failure requires --wait$/);
});

test('suggests --header when the endpoint refuses the caller', async () => {
  const server = createServer((_, response) => response.writeHead(401).end('who?')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { err } = await register(`closed --id one --endpoint http://127.0.0.1:${port}/mcp --wait 5`);
  server.close();
  assert.match(err, /401.*; give the credentials with --header Authorization=@<file>; it stays registered$/);
  await gateway.run('instance deregister closed one');
});

test('sends headers, from the command line or a file, and metadata', async () => {
  await writeFile(folder('token.txt'), 'Bearer of secrets\n');
  const headers = `--header X-One=1=2 --header Authorization=@${folder('token.txt')}`;
  const metadata = '--metadata owner=somebody --metadata zone=';
  await printed(register(`far --id headed ${FAR} ${headers} ${metadata}`));
  const definition = definitionOf('far', 'headed');
  assert.equal({ ...definition.headers }, { 'X-One': '1=2', Authorization: 'Bearer of secrets' });
  assert.equal({ ...definition.metadata }, { owner: 'somebody', zone: '' });
});

test('registers a program together with the endpoint that it serves', async () => {
  const record = JSON.parse(
    (await register(`served --id one ${FAR} --env A=1 --json --command`, program)).out,
  );
  assert.equal([record.instance_id, record.template_name], ['one', 'served']);
  const { transport, endpoint, command, env } = definitionOf('served', 'one');
  const asked = { transport: 'http', endpoint: 'http://127.0.0.1:9/mcp', command: process.execPath };
  assert.equal({ transport, endpoint, command, env: { ...env } }, { ...asked, env: { A: '1' } });
});

const failures: readonly { what: string; seconds: number; command: string; said: RegExp }[] = [
  {
    // A program that ends at once is started a second time, with another first question.
    ...{ what: 'with the whole reason', seconds: 6, command: `"${stdioServerPath}" --refuse-start` },
    said: /exited with code 3.*; last output: .*refusing to start: .*; it stays registered$/,
  },
  {
    ...{ what: 'with the error of a script, without its stack', seconds: 6, command: '/no/such/server.js' },
    said: /; last output: .*Error: Cannot find module '\S+server\.js'.*; it stays registered$/,
  },
  {
    ...{
      what: 'for a program that is still starting',
      seconds: 1,
      command: '-e "setInterval(() => {}, 1000)"',
    },
    said: /: it is still starting; it stays registered$/,
  },
];
for (const [index, { what, seconds, command, said }] of failures.entries()) {
  test(`fails ${what} when it is not healthy in time, and leaves it registered`, async () => {
    const words = `broken-${index} --id one --wait ${seconds} --command`;
    const { code, err } = await register(words, `"${process.execPath}" ${command}`);
    assert.match(err, new RegExp(`^stagedoor: one is not healthy after ${seconds} s: `));
    assert.match(err, said);
    const left = gateway.server.gateway.template(`broken-${index}`).instances.length;
    assert.equal([code, left], [1, 1]);
  });
}

test('does not wait for a program that does not exist', async () => {
  const { code, err } = await register('missing --id one --wait 300 --command', 'no-such-program');
  assert.is(
    err.split('\n')[0],
    'stagedoor: one could not be started: ENOENT, there is no program "no-such-program"; it stays registered',
  );
  assert.is(code, 1);
});

test('shows why the gateway refuses the request', async () => {
  const line = /^stagedoor: \S+command: The command cannot be split into words: .* \(VALIDATION_ERROR\)$/;
  assert.match(await complaint(register('a --command', "node 'a")), line);
  assert.match(await complaint(register('time --defined --header A=1')), /Only an endpoint has h/);
});

test('refuses invalid options, and options that a definition excludes', async () => {
  assert.match(
    await complaint(register('time --wait 5'), 2),
    / needs --endpoint or --command; --defined, or/,
  );
  assert.match(
    await complaint(gateway.run('instance register', 'Ünix files', '--command', 'cat'), 2),
    /^stagedoor: the name of a template has lower-case letters from a to z, digits and dashes, /,
  );
  const cases: [string, RegExp][] = [
    ['--command a --env A=1 --env A=2', /--env A can be given only once/],
    ['--command a --env A', /--env must be KEY=VALUE, not "A"/],
    ['--endpoint http://a --header A', /--header must be NAME=VALUE, not "A"/],
    [
      '--endpoint http://a --header A=@none.txt',
      /--header: "none\.txt" cannot be read \(there is no such file\)/,
    ],
    ['--command a --weight 0', /--weight must be a whole number from 1 to 1000, not "0"/],
    ['--command a --wait x', /--wait must be a whole number/],
    ['--defined --command x', /--command cannot be combined with --defined or --config$/],
  ];
  for (const [words, message] of cases) {
    const said = await complaint(runCommand(`instance register a ${words}`.trim().split(' ')), 2);
    assert.match(said, message);
  }
});

test('starts a server of the catalogue by its definition, with settings of --config', async () => {
  const out = await printed(register(`filesystem --config folders=${folder()} --wait 60 --json`));
  const { id, state, args } = JSON.parse(out);
  assert.equal([state, args.at(-1)], ['healthy', folder()]);
  assert.match((await gateway.run('tool call filesystem list_allowed_directories')).out, folder());
  await printed(gateway.run(`instance deregister filesystem ${id}`));
  const missing = await complaint(register('filesystem --defined'));
  assert.match(missing, /requires a separate folder for each server: set "config\.folders"/);
  assert.match(await complaint(register('filesystem --config fodlers=/srv')), /^.*fodlers/);
});

test('masks secret settings of a definition', async () => {
  const mapping = { type: 'string', sensitive: true, header_mapping: 'Authorization' };
  const definition = {
    ...{ id: 'remote', name: 'Remote', description: 'Far away.', version: '1.0.0' },
    ...{ endpoint: 'http://127.0.0.1:1/mcp', transport: 'http' },
    config_schema: {
      properties: { token: { ...mapping, default: 'planted-default' }, key: { $ref: '#/$defs/secret' } },
      $defs: { secret: { type: 'string', sensitive: true, env_mapping: 'KEY', default: 'planted-key' } },
    },
  };
  await mkdir(folder('templates', 'remote'), { recursive: true });
  await writeFile(folder('templates', 'remote', 'template.json'), JSON.stringify(definition));
  const other = await startGateway({ more: { 'templates-dir': folder('templates') } });
  try {
    const registering = other.run('instance register remote --config token=planted-secret --json');
    const registered = await printed(registering);
    assert.equal(JSON.parse(registered).headers, { Authorization: '***' });
    const shown = await printed(other.run('template show remote --json'));
    assert.is(JSON.parse(shown).config_schema.properties.token.default, '***');
    const all = await fetch(`${other.url}/gateway/registry`);
    assert.not.match(registered + shown + (await all.text()), /planted/);
  } finally {
    await other.close();
  }
});

test.run();
