import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { stdioServerPath } from '../../fixtures/drive.ts';
import { suite } from '../../helpers/suite.ts';
import { type GatewayUnderTest, runCommand, startGateway } from './against-gateway.ts';

const test = suite('gateway register');
const program = `"${process.execPath}" "${stdioServerPath}"`;
let gateway: GatewayUnderTest;
test.before(async () => {
  gateway = await startGateway();
});
test.after(() => gateway.close());

test('registers a program with its folder, environment and weight, and waits until it is healthy', async () => {
  const { code, out, err } = await gateway.run(
    ...['gateway', 'register', 'files', '--command', program, '--working-dir', 'sub/..', '--id', '007'],
    ...['--env', 'A=1', '--env', 'B=x=y', '--weight', '3', '--wait', '20'],
  );
  assert.equal(
    { code, out, err },
    {
      code: 0,
      out: `007 is registered in files: healthy\nMCP clients: ${gateway.url}/mcp/files; "npx stagedoor connect files" shows how`,
      err: '',
    },
  );
  const { definition } = gateway.server.gateway.instance('files', '007');
  const { env, weight, workingDir } = definition;
  assert.equal({ env, weight, workingDir }, { env: { A: '1', B: 'x=y' }, weight: 3, workingDir: tmpdir() });
});

test('says when it replaced an instance', async () => {
  const words = ['gateway', 'register', 'twice', '--id', 'one', '--endpoint', 'http://127.0.0.1:9/mcp'];
  const [first, second] = [await gateway.run(...words), await gateway.run(...words)];
  assert.match(first.out, /^one is registered in twice: /);
  assert.match(second.out, /^one is replaced in twice: /);
});

test('sends headers, from the command line or a file, and metadata', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'stagedoor-register-'));
  await writeFile(join(folder, 'token.txt'), 'Bearer of secrets\n');
  const { code, err } = await gateway.run(
    ...['gateway', 'register', 'far', '--id', 'headed', '--endpoint', 'http://127.0.0.1:9/mcp'],
    ...['--header', 'X-One=1=2', '--header', `Authorization=@${join(folder, 'token.txt')}`],
    ...['--metadata', 'owner=somebody', '--metadata', 'zone='],
  );
  await rm(folder, { recursive: true });
  assert.equal([code, err], [0, '']);
  const { headers, metadata } = gateway.server.gateway.instance('far', 'headed').definition;
  assert.equal({ ...headers }, { 'X-One': '1=2', Authorization: 'Bearer of secrets' });
  assert.equal({ ...metadata }, { owner: 'somebody', zone: '' });
});

test('registers an endpoint without waiting for it', async () => {
  const { code, out } = await gateway.run('gateway', 'register', 'far', '--endpoint', 'http://127.0.0.1:9');
  assert.is(code, 0);
  assert.match(out, /^far-[0-9a-f]{8} is registered in far: (starting|unhealthy)$/m);
});

test('registers a program together with the endpoint that it serves', async () => {
  const { code } = await gateway.run(
    ...['gateway', 'register', 'served', '--id', 'one', '--endpoint', 'http://127.0.0.1:9/mcp'],
    ...['--command', program, '--env', 'A=1'],
  );
  assert.is(code, 0);
  const { transport, endpoint, command, env } = gateway.server.gateway.instance('served', 'one').definition;
  const asked = {
    transport: 'http',
    endpoint: 'http://127.0.0.1:9/mcp',
    command: process.execPath,
    env: { A: '1' },
  };
  assert.equal({ transport, endpoint, command, env: { ...env } }, asked);
});

test('passes on how an endpoint is spoken to', async () => {
  const { out } = await gateway.run(
    ...['gateway', 'register', 'old', '--endpoint', 'http://127.0.0.1:9/sse', '--transport', 'sse', '--json'],
  );
  assert.is(JSON.parse(out).transport, 'sse');
});

test('prints the record as JSON', async () => {
  const { out } = await gateway.run(
    ...['gateway', 'register', 'json', '--endpoint', 'http://127.0.0.1:9/x', '--id', 'one', '--json'],
  );
  const { instance_id, template_name, endpoint } = JSON.parse(out);
  assert.equal([instance_id, template_name, endpoint], ['one', 'json', 'http://127.0.0.1:9/x']);
});

test('fails with the reason when it is not healthy in time, and leaves it registered', async () => {
  const { code, err } = await gateway.run(
    // A program that ends at once is started a second time, with another first question.
    ...['gateway', 'register', 'broken', '--id', 'one', '--wait', '6'],
    ...['--command', `"${process.execPath}" "${stdioServerPath}" --refuse-start`],
  );
  assert.is(code, 1);
  const [line = '', ...details] = err.split('\n');
  assert.match(
    line,
    /^stagedoor: one is not healthy after 6 s: .*exited with code 3[^.]*; it stays registered$/,
  );
  assert.is(details[0], 'It wrote last:');
  assert.match(String(details.at(-1)), /^ {2}refusing to start: /);
  assert.is(gateway.server.gateway.template('broken').instances.length, 1);
});

test('shows the error of a script that is not there, which is above its stack', async () => {
  const { err } = await gateway.run(
    ...['gateway', 'register', 'absent', '--id', 'one', '--wait', '6'],
    ...['--command', `"${process.execPath}" /no/such/server.js`],
  );
  assert.match(err, /^ {2}Error: Cannot find module .*server\.js'$/m);
});

test('says that an instance is still starting when nothing else is known', async () => {
  const { code, err } = await gateway.run(
    ...['gateway', 'register', 'slow', '--id', 'one', '--wait', '1'],
    ...['--command', `"${process.execPath}" -e "setInterval(() => {}, 1000)"`],
  );
  const line = 'stagedoor: one is not healthy after 1 s: it is still starting; it stays registered';
  assert.equal([code, err], [1, line]);
});

test('says what a program has done so far that is still starting', async () => {
  const junk = "for (let n = 1; n <= 150; n += 1) console.log('junk ' + n); setInterval(() => {}, 1000)";
  const { code, err } = await gateway.run(
    ...['gateway', 'register', 'junk', '--id', 'one', '--wait', '1'],
    ...['--command', `"${process.execPath}" -e "${junk}"`],
  );
  const [line, ...details] = err.split('\n');
  const reason = 'it is still starting, and wrote 150 lines that are no JSON-RPC';
  assert.equal([code, line], [1, `stagedoor: one is not healthy after 1 s: ${reason}; it stays registered`]);
  assert.equal([details[0], details.at(-1)], ['It wrote last:', '  junk 150']);
});

test('names the option that the gateway refuses', async () => {
  const { code, err } = await gateway.run('gateway', 'register', 'a', '--command', "node 'a");
  assert.is(code, 1);
  assert.match(
    err,
    /^stagedoor: --command: The command cannot be split into words: .* \(VALIDATION_ERROR\)$/,
  );
});

test('shows why the gateway refuses', async () => {
  const { code, err } = await gateway.run(
    'gateway',
    'register',
    'Bad Name',
    '--endpoint',
    'http://127.0.0.1:9',
  );
  assert.is(code, 1);
  assert.is(
    err,
    'stagedoor: a template name is lower-case letters, digits and hyphens, starting with a letter (VALIDATION_ERROR)',
  );
});

const misuses: readonly (readonly [string[], RegExp])[] = [
  [[], /missing --endpoint <url> or --command <line>/],
  [['--endpoint', 'http://a', '--working-dir', '.'], /--working-dir and --env require --command/],
  [['--endpoint', 'http://a', '--env', 'A=1'], /--working-dir and --env require --command/],
  [['--command', 'a', '--env', 'A'], /--env takes KEY=VALUE, not "A"/],
  [['--command', 'a', '--header', 'A=1'], /--header requires --endpoint/],
  [['--endpoint', 'http://a', '--header', 'A'], /--header takes NAME=VALUE, not "A"/],
  [['--endpoint', 'http://a', '--header', 'A=@none.txt'], /--header: "none\.txt" cannot be read \(ENOENT\)/],
  [['--endpoint', 'http://a', '--metadata', 'A'], /--metadata takes KEY=VALUE, not "A"/],
  [['--command', 'a', '--weight', '0'], /--weight must be a whole number from 1 to 1000, not "0"/],
  [['--command', 'a', '--wait', 'x'], /--wait must be a whole number/],
];
for (const [words, message] of misuses) {
  test(`refuses ${words.join(' ') || 'neither endpoint nor command'}`, async () => {
    const { code, err } = await runCommand(['gateway', 'register', 'a', ...words]);
    assert.is(code, 2);
    assert.match(err, message);
  });
}

test.run();
