// Kubeconfigs that log in with a program: real programs, and the simulated API server.

import { once } from 'node:events';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import * as assert from 'uvu/assert';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { becomes } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { hasOpenssl, makeSelfSigned } from '../../helpers/network/certificates.ts';
import { isRunning } from '../../helpers/programs/processes.ts';
import { suite } from '../../helpers/suite.ts';
import { FakeCluster } from './fake-cluster.ts';

const test = suite('logins to Kubernetes with a program');
const folder = folderOfEach(test);
let cluster: FakeCluster;
let gateways: Gateway[] = [];
test.before.each(async () => {
  cluster = new FakeCluster();
  await cluster.listen();
});
test.after.each(async () => {
  await Promise.all(gateways.map((each) => each.close()));
  gateways = [];
  await cluster.close();
});

const NOWHERE = 'unix:///nowhere/engine.sock';
const V1 = 'client.authentication.k8s.io/v1';
const V1BETA1 = 'client.authentication.k8s.io/v1beta1';

const AN_HOUR_MS = 3_600_000;
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

/** What the program prints as `status`. */
const answers = (status: object, apiVersion = V1) =>
  writeFile(folder('answer.json'), JSON.stringify({ apiVersion, kind: 'ExecCredential', status }));

/** A program that notes what it got, and prints `answer.json`. */
async function program(body = `process.stdout.write(readFileSync(here + 'answer.json', 'utf8'));`) {
  const head = `import { appendFileSync, readFileSync } from 'node:fs';
const here = ${JSON.stringify(`${folder()}/`)};
appendFileSync(here + 'runs', JSON.stringify({ args: process.argv.slice(2), env: process.env, pid: process.pid }) + '\\n');
`;
  await writeFile(folder('login.mjs'), `${head}${body}\n`);
}

interface Run {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly pid: number;
}

async function runs(): Promise<Run[]> {
  const text = await readFile(folder('runs'), 'utf8').catch(() => ''); // no file: it has not run
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

const nodeProgram = (more: object = {}) => ({
  apiVersion: V1,
  command: process.execPath,
  args: [folder('login.mjs'), 'get-token'],
  ...more,
});

async function gatewayOf(exec: object, access: object = {}, env: Readonly<Record<string, string>> = {}) {
  const config = {
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'the-cluster', user: 'the-user' } }],
    clusters: [{ name: 'the-cluster', cluster: { server: cluster.url, ...access } }],
    users: [{ name: 'the-user', user: { exec } }],
  };
  await writeFile(folder('config'), JSON.stringify(config));
  const own = { PATH: process.env.PATH, DOCKER_HOST: NOWHERE, CONTAINER_HOST: NOWHERE, ...env };
  const gateway = await createGateway({ discovery: { env: { ...own, KUBECONFIG: folder('config') } } });
  gateways.push(gateway);
  return gateway;
}

const reached = () => [`${cluster.url} (namespace mcp-servers)`];
const warningsOf = async (gateway: Gateway) =>
  (await gateway.sync()).warnings.filter((line) => !line.includes(NOWHERE));

test('uses the token that the program prints, and keeps it', async () => {
  for (const apiVersion of [V1, V1BETA1]) {
    await program();
    await answers({ token: cluster.token, expirationTimestamp: inMs(AN_HOUR_MS) }, apiVersion);
    const gateway = await gatewayOf(nodeProgram({ apiVersion }));
    const outcome = await gateway.sync();
    assert.equal(outcome.reached, reached(), outcome.warnings.join());
    assert.equal((await gateway.sync()).reached, reached());
    const [{ args } = { args: [] }, ...more] = (await runs()).splice(-1);
    assert.equal([args, more], [['get-token'], []]);
  }
  assert.is((await runs()).length, 2, 'one run for three requests of two listings, per gateway');
});

test('runs the program again after the expiry of the credential, and after its refusal', async () => {
  await program();
  await answers({ token: cluster.token, expirationTimestamp: inMs(-1_000) });
  const gateway = await gatewayOf(nodeProgram());
  assert.equal((await gateway.sync()).reached, reached());
  const before = (await runs()).length;
  await answers({ token: cluster.token });
  assert.equal((await gateway.sync()).reached, reached());
  assert.is((await runs()).length, before + 1);

  cluster.token = 'second-token';
  await answers({ token: 'second-token' });
  assert.equal((await gateway.sync()).reached, reached());
  assert.is((await runs()).length, before + 2, 'one run for three refused requests');

  cluster.token = 'unknown to the program';
  assert.match((await warningsOf(gateway)).join(), /answers 401 for \w+: Unauthorized$/);
  assert.ok((await runs()).length <= before + 5);
});

test('gives the program its variables and the cluster, but no secret of the gateway', async () => {
  await program();
  await answers({ token: cluster.token });
  const ca = Buffer.from('an authority').toString('base64');
  const extension = { audience: 'x' };
  const gateway = await gatewayOf(
    nodeProgram({ env: [{ name: 'AWS_PROFILE', value: 'own' }], provideClusterInfo: true }),
    {
      'certificate-authority-data': ca,
      extensions: [{ name: 'client.authentication.k8s.io/exec', extension }],
    },
    {
      ...{ GATEWAY_SECRET_KEY: 's3cret', GATEWAY_DATABASE_URL: 's3cret', HOME: folder() },
      ...{ AWS_REGION: 'eu-central-1', AWS_PROFILE: 'inherited', HTTPS_PROXY: 'http://proxy:3128' },
    },
  );
  await gateway.sync();
  const [run] = await runs();
  const { KUBERNETES_EXEC_INFO = '', PATH, ...others } = run?.env ?? {};
  assert.ok(PATH);
  assert.equal(others, {
    ...{ HOME: folder(), AWS_REGION: 'eu-central-1', AWS_PROFILE: 'own' },
    ...{ HTTPS_PROXY: 'http://proxy:3128', KUBECONFIG: folder('config') },
  });
  assert.equal(JSON.parse(KUBERNETES_EXEC_INFO), {
    apiVersion: V1,
    kind: 'ExecCredential',
    spec: {
      interactive: false,
      cluster: { server: cluster.url, 'certificate-authority-data': ca, config: extension },
    },
  });
});

test('reports in one line why a program gives no credential', async () => {
  await answers({ token: 's3cret' });
  const cases: readonly (readonly [exec: object, body: string, warning: RegExp])[] = [
    [
      { command: 'no-such-program', installHint: 'Get it\n\n  at example.org' },
      '',
      /^\S+: its login program "no-such-program" was not found: Get it at example\.org$/,
    ],
    [{ command: 'no-such-program' }, '', /was not found: install it, or correct the PATH of the gateway$/],
    [{ interactiveMode: 'Always' }, '', /^kubernetes: \S+: its login program "\S+" is interactive/],
    [{ apiVersion: 'client.authentication.k8s.io/v1alpha1' }, '', /field exec of its user is not valid/],
    [{ args: [1] }, '', /field exec of its user is not valid/],
    [
      {},
      `console.error('\\nyour login has expired\\nsecond line'); process.exit(3);`,
      /its login program "\S+" exited with code 3: your login has expired$/,
    ],
    [{}, `console.log('s3cret');`, /printed no ExecCredential of client\.authentication\.k8s\.io\/v1$/],
    [{ apiVersion: V1BETA1 }, '', /printed no ExecCredential of client\.authentication\.k8s\.io\/v1beta1$/],
    [{}, `console.log('x'.repeat(300_000)); setInterval(() => {}, 1_000);`, /printed more than 256 KiB$/],
    [
      {},
      `console.log(JSON.stringify({ apiVersion: '${V1}', kind: 'ExecCredential', status: {} }));`,
      /printed neither a token nor a certificate with its key$/,
    ],
  ];
  for (const [exec, body, warning] of cases) {
    await program(body || undefined);
    const warnings = await warningsOf(await gatewayOf(nodeProgram(exec)));
    assert.is(warnings.length, 1, warnings.join('\n'));
    assert.match(warnings[0] ?? '', warning);
    assert.not.match(warnings[0] ?? '', /s3cret|\n/);
  }
  for (const { pid } of await runs()) await becomes(() => isRunning(pid), false);
});

test('finds a relative command in the folder of the kubeconfig', async () => {
  await answers({ token: cluster.token });
  await writeFile(folder('login'), `#!/bin/sh\nexec cat "${folder('answer.json')}"\n`);
  await chmod(folder('login'), 0o755);
  const gateway = await gatewayOf({ apiVersion: V1, command: './login' });
  assert.equal(await warningsOf(gateway), []);
});

test('closing ends a program that runs', async () => {
  await program('setInterval(() => {}, 1_000);');
  const gateway = await gatewayOf(nodeProgram());
  const synced = gateway.sync();
  await becomes(async () => (await runs()).length, 1);
  await gateway.close();
  await synced;
  const [run] = await runs();
  await becomes(() => isRunning(run?.pid ?? 0), false);
});

const openssl = test.needs(hasOpenssl(), 'no openssl here');
openssl('uses the certificate that the program prints, and the next one after its expiry', async () => {
  const [, port = ''] = /:(\d+)$/.exec(cluster.url) ?? [];
  for (const name of ['server', 'first', 'second']) makeSelfSigned(folder(), name);
  const pem = (name: string) => readFile(folder(name), 'utf8');
  const seen = new Set<string>();
  const settings = {
    ...{ cert: await pem('server.crt'), key: await pem('server.key') },
    ca: [await pem('first.crt'), await pem('second.crt')],
  };
  const front = createTlsServer({ ...settings, requestCert: true }, (socket: TLSSocket) => {
    seen.add(String(socket.getPeerCertificate().subject.CN));
    const behind = connect(Number(port), '127.0.0.1');
    socket.on('error', () => behind.destroy()).pipe(behind);
    behind.on('error', () => socket.destroy()).pipe(socket);
  });
  await once(front.listen(0, '127.0.0.1'), 'listening');
  try {
    const server = `https://127.0.0.1:${(front.address() as AddressInfo).port}`;
    await program();
    const shows = async (name: string) => {
      const certificate = {
        clientCertificateData: await pem(`${name}.crt`),
        clientKeyData: await pem(`${name}.key`),
      };
      await answers({ ...certificate, token: cluster.token, expirationTimestamp: inMs(-1_000) });
    };
    const gateway = await gatewayOf(nodeProgram(), { server, 'certificate-authority': 'server.crt' });
    for (const name of ['first', 'second']) {
      await shows(name);
      assert.equal(await warningsOf(gateway), []);
      assert.equal([...seen], [name]);
      seen.clear();
    }
  } finally {
    front.close();
  }
});

test.run();
