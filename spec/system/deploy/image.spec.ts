// deploy/Dockerfile and deploy/compose.yaml in a real engine. The image is built as the file says, on a base made of this
// machine; it runs without privileges on a read-only file system. Where podman-compose is installed, all services of the
// composition run, in images made of servers of this machine. Where no engine can run, or npm cannot fetch packages, the tests
// are skipped.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createGzip } from 'node:zlib';
import * as assert from 'uvu/assert';
import { parse } from 'yaml';
import { caller, field, tokenOf, toolText } from '../../helpers/clients/caller.ts';
import { type Podman, startPodman } from '../../helpers/containers/podman.ts';
import { becomes, eventually } from '../../helpers/eventually.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { suite } from '../../helpers/suite.ts';
import { importNodeImage, importPostgresImage, importRedisImage } from './machine-images.ts';

const run = promisify(execFile);
const repository = fileURLToPath(new URL('../../..', import.meta.url));
const IMAGE = 'localhost/stagedoor:spec';
/** Longest build; on a slower machine the tests are skipped. */
const BUILD_MS = 160_000;
const MAX_COMPRESSED_BYTES = 250e6;

const { engine, skip } = await open();
const test = suite('the image', { timeoutMs: 150_000 });
const withImage = test.needs(engine, skip);
test.after(() => engine?.close());

withImage('is below 250 MB when compressed, and contains no second Node and no TypeScript', async () => {
  const podman = engine as Podman;
  const bytes = Number(await podman.podman('image', 'inspect', '--format', '{{.Size}}', IMAGE));
  const archive = podman.open('save', IMAGE);
  archive.stderr?.resume();
  let compressed = 0;
  for await (const part of archive.stdout?.pipe(createGzip({ level: 1 })) ?? []) compressed += part.length;
  process.stdout.write(`image ${mb(bytes)}, compressed ${mb(compressed)}\n`);
  assert.ok(compressed > 20e6 && compressed < MAX_COMPRESSED_BYTES, mb(compressed));
  const list =
    "require('node:fs').readdirSync('/app/node_modules').filter((name) => /^node-(linux|win)|^typescript$/.test(name))";
  const words = ['run', '--rm', '--network=none', '--entrypoint=node', IMAGE, '-p', list];
  assert.is(await podman.podman(...words), '[]');
});

withImage('serves from a read-only file system, without privileges, and exits with 0', async () => {
  const podman = engine as Podman;
  const place = ['--network=none', '--read-only', '--tmpfs=/tmp', '--cap-drop=ALL', '-v', 'state:/data'];
  const options = ['--security-opt=no-new-privileges', '--init=false', ...place];
  for (const round of ['first', 'second']) {
    const id = await podman.podman('run', '-d', ...options, IMAGE);
    assert.is(await healthy(podman, id), 'healthy', await logs(podman, id));
    const ask = "fetch('http://127.0.0.1:8080/health').then((answer) => answer.json()).then(console.log)";
    assert.match(await podman.podman('exec', id, 'node', '-e', ask), "database: 'connected'");
    const look = "fetch('http://127.0.0.1:8080/console').then((answer) => answer.text()).then(console.log)";
    assert.match(await podman.podman('exec', id, 'node', '-e', look), '<script type="module"');
    assert.is(await podman.podman('exec', id, 'node', '-p', 'process.getuid()'), '1000');
    await podman.podman('stop', '-t', '40', id);
    assert.is(await podman.podman('inspect', '--format', '{{.State.ExitCode}}', id), '0');
    const said = await logs(podman, id);
    assert.ok(said.includes('"msg":"stopped"'), said);
    // The volume keeps the state of the first start.
    assert.is(/initial-admin-password/.test(said), round === 'first', said);
    await podman.podman('rm', id);
  }
});

/** The parts of the composition that are read here. */
const compose: {
  readonly services: Readonly<Record<string, { readonly image?: string; readonly command?: string }>>;
} = parse(await readFile(join(repository, 'deploy/compose.yaml'), 'utf8'));

const composer = await findComposer();
test.needs(composer.program, composer.skip)('runs with all services by podman-compose', async () => {
  const podman = engine as Podman;
  const folder = join(podman.folder, 'composed/deploy');
  await mkdir(join(folder, 'secrets'), { recursive: true });
  const port = await freePort();
  const file = join(folder, 'compose.yaml');
  const text = await readFile(join(repository, 'deploy/compose.yaml'), 'utf8');
  assert.match(text, '127.0.0.1:8080:8080');
  await writeFile(file, text.replace('127.0.0.1:8080:8080', `127.0.0.1:${port}:8080`));
  await copyFile(join(repository, 'deploy/servers.json'), join(folder, 'servers.json'));
  const password = 'correct horse battery';
  const secrets = {
    database_url: 'postgresql://stagedoor:composed@postgres:5432/stagedoor',
    signing_key: 'a signing key that is long enough: 32 bytes',
    admin_password: password,
    postgres_password: 'composed',
  };
  for (const [name, value] of Object.entries(secrets))
    await writeFile(join(folder, 'secrets', name), `${value}\n`, { mode: 0o444 });
  // The images are made of programs of this machine; none is fetched.
  const { everything, postgres, redis: counting } = compose.services;
  const packages = join(podman.folder, 'packages');
  await mkdir(packages);
  const [, wanted = ''] = /^npx -y (\S+)/.exec(String(everything?.command)) ?? [];
  const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
  await run('npm', ['install', '--prefix', packages, ...quiet, wanted], { cwd: packages, timeout: 60_000 });
  await importNodeImage(podman, String(everything?.image), packages);
  await importPostgresImage(podman, String(postgres?.image));
  await importRedisImage(podman, String(counting?.image));
  await podman.podman('tag', IMAGE, `localhost/${compose.services.gateway?.image}:latest`);

  const project = `stagedoor-${port}`; // not a fixed name: networks with the same name share one DNS zone
  const words = ['--podman-path', String(composer.program), '-p', project, '-f', file];
  const podmanCompose = (...more: string[]) =>
    run('podman-compose', [...words, ...more], { cwd: folder, timeout: 90_000 });
  try {
    await podmanCompose('up', '-d');
    const url = `http://127.0.0.1:${port}`;
    await becomes<unknown>(() => fetch(`${url}/readyz`).then(({ status }) => status, String), 200, 60_000);
    const admin = caller(url, await tokenOf(url, 'admin', password));
    const healthyInstances = async () =>
      field(await admin('GET /mcp/everything/health'), 'healthy_instances');
    await becomes(healthyInstances, 1, 20_000);
    const call = { name: 'echo', arguments: { message: 'composed' } };
    assert.match(toolText(await admin('POST /mcp/everything/tools/call', call)), /composed/);
    assert.not.match(await logs(podman, `${project}_gateway_1`), /a signing key|correct horse/);
  } finally {
    await podmanCompose('down', '-v', '-t', '10').catch(() => undefined); // the engine removes what is left
  }
});

const docker = await run('docker', ['compose', 'version']).then(
  () => true,
  () => false,
);
test.needs(docker, 'docker compose is not installed')('has a valid docker compose file', async () => {
  await run('docker', ['compose', '-f', join(repository, 'deploy/compose.yaml'), 'config', '--quiet']);
});

test.run();

/** An engine that has built the image, or why there is none. */
async function open(): Promise<{ readonly engine: Podman | undefined; readonly skip: string }> {
  let found = await startPodman('overlay');
  if (found.engine === undefined) found = await startPodman();
  if (found.engine === undefined) return found;
  try {
    const base = await importNodeImage(found.engine);
    if (await build(found.engine, base)) return found;
    await found.engine.close();
    return { engine: undefined, skip: 'the image was not built in time' };
  } catch (thrown) {
    await found.engine.close();
    const said = `${Object(thrown).stdout ?? ''}${Object(thrown).stderr ?? thrown}`;
    const [, code] =
      /npm error code (ENOTCACHED|ENOTFOUND|EAI_AGAIN|ECONN\w+|ETIMEDOUT|E4\d\d|E5\d\d|\w*CERT\w*)/.exec(
        said,
      ) ?? [];
    if (code) return { engine: undefined, skip: `npm could not fetch packages inside of a build (${code})` };
    throw new Error(`the image was not built:\n${said.slice(-3_000)}`);
  }
}

/** The program for podman-compose, if containers find each other on a network by name; or the reason why not. */
async function findComposer(): Promise<{ readonly program?: string; readonly skip: string }> {
  if (engine === undefined) return { skip };
  for (const name of ['podman-compose', 'redis-server', 'redis-cli']) {
    const isThere = await run('sh', ['-c', `command -v ${name}`]).then(
      () => true,
      () => false,
    );
    if (!isThere) return { skip: `${name} is not installed` };
  }
  if (!existsSync('/usr/lib/postgresql')) return { skip: 'PostgreSQL is not installed as Debian has it' };
  const program = await engine.program();
  try {
    await run(program, ['network', 'create', 'probe']);
    const ask = [
      'run',
      '--rm',
      '--init',
      '--name=probe',
      '--network=probe',
      '--entrypoint=node',
      IMAGE,
      '-e',
    ];
    await run(program, [
      ...ask,
      "require('node:dns').lookup('probe', (failure) => process.exit(failure ? 1 : 0))",
    ]);
    return { program, skip: '' };
  } catch (thrown) {
    const [line = ''] = String(Object(thrown).stderr || thrown).split('\n');
    return { skip: `podman cannot run containers with an init process on a network with names: ${line}` };
  }
}

/** Builds with the npm settings and cache of this machine; false when that takes too long. */
async function build(podman: Podman, base: string): Promise<boolean> {
  const setting = async (name: string) => {
    const { stdout } = await run('npm', ['config', 'get', name], { cwd: repository });
    return ['null', 'undefined', ''].includes(stdout.trim()) ? undefined : stdout.trim();
  };
  const lines = [
    'cache=/npm/cache',
    'prefer-offline=true',
    'audit=false',
    'fund=false',
    'update-notifier=false',
  ];
  for (const name of ['registry', 'proxy', 'https-proxy', 'noproxy']) {
    const value = await setting(name);
    if (value !== undefined) lines.push(`${name}=${value}`);
  }
  const authority = (await setting('cafile')) ?? process.env.NODE_EXTRA_CA_CERTS;
  const mounts = [];
  if (authority !== undefined && existsSync(authority)) {
    lines.push('cafile=/npm/authority.crt');
    mounts.push('-v', `${authority}:/npm/authority.crt:ro`);
  }
  const settings = join(podman.folder, 'npmrc');
  await writeFile(settings, `${lines.join('\n')}\n`, { mode: 0o600 });
  const cache = (await setting('cache')) ?? join(podman.folder, 'npm-cache');
  await mkdir(cache, { recursive: true });
  mounts.push('-v', `${cache}:/npm/cache`, '-v', `${settings}:/root/.npmrc:ro`);
  // `docker`: the other format has no HEALTHCHECK.
  const words = ['--layers=false', '--format=docker', '--network=host', ...mounts, '--tag', IMAGE];
  const file = ['--build-arg', `NODE_IMAGE=${base}`, '-f', join(repository, 'deploy/Dockerfile'), repository];
  return podman.build(BUILD_MS, ...words, ...file);
}

/** Runs the health check of the image until it passes; podman leaves repeating it to systemd. */
function healthy(podman: Podman, id: string): Promise<string> {
  const check = () =>
    podman.podman('healthcheck', 'run', id).then(
      () => 'healthy',
      (error) => String(Object(error).stderr ?? error),
    );
  return eventually(check, (state) => state === 'healthy', 60_000);
}

async function logs(podman: Podman, id: string): Promise<string> {
  const command = podman.open('logs', id);
  let said = '';
  for (const channel of [command.stdout, command.stderr]) {
    channel?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  await once(command, 'close');
  return said;
}

function mb(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}
