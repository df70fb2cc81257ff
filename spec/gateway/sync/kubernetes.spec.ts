import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import { firstValueFrom, map } from 'rxjs';
import * as assert from 'uvu/assert';
import { parseAllDocuments } from 'yaml';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { becomes, until } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import {
  hasOpenssl,
  issueCertificate,
  makeAuthority,
  makeSelfSigned,
} from '../../helpers/network/certificates.ts';
import { codeOf } from '../../helpers/outcome.ts';
import { suite } from '../../helpers/suite.ts';
import { FakeCluster, HTTP, pod, service, slice } from './fake-cluster.ts';

const test = suite('sync with Kubernetes');
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

/** Of 256 TiB, though its size is 0. */
const ENDLESS = '/proc/self/pagemap';
const NOWHERE = 'unix:///nowhere/engine.sock';
const NO_ENGINES = { DOCKER_HOST: NOWHERE, CONTAINER_HOST: NOWHERE };

const token = (text: string) => writeFile(folder('token'), `${text}\n`);

interface Access {
  readonly cluster?: object;
  readonly user?: object;
}

/** Writes a kubeconfig of this cluster. */
async function writeConfig(access: Access): Promise<void> {
  const named = (name: string, kind: string, fields: object) => [{ name, [kind]: fields }];
  const config = {
    'current-context': 'here',
    contexts: named('here', 'context', { cluster: 'the-cluster', user: 'the-user' }),
    clusters: named('the-cluster', 'cluster', { server: cluster.url, ...access.cluster }),
    users: named('the-user', 'user', access.user ?? { tokenFile: 'token' }),
  };
  // JSON is YAML, too.
  await writeFile(folder('config'), JSON.stringify(config));
}

/** A gateway with a kubeconfig of this cluster, whose notices are kept. */
async function gatewayOf(
  namespace?: string,
  access: Access = {},
): Promise<{ gateway: Gateway; notices: string[] }> {
  await token(cluster.token);
  await writeConfig(access);
  const env = { ...NO_ENGINES, KUBECONFIG: folder('config') };
  const notices: string[] = [];
  const discovery = { env, namespace, onNotice: (line: string) => notices.push(line) };
  const gateway = await createGateway({ discovery, graceMs: 0 });
  gateways.push(gateway);
  return { gateway, notices };
}

const labelled = { labels: { 'stagedoor/template': 'web' } };

/** Resolves with the instance of the next such event. */
const next = (gateway: Gateway, name: 'instance.registered' | 'instance.deregistered') =>
  firstValueFrom(gateway.on(name).pipe(map(({ instanceId }) => instanceId)));

const endpoints = (gateway: Gateway) =>
  Object.fromEntries(gateway.servers().map(({ definition: { id, endpoint } }) => [id, endpoint]));

test('makes an instance of each ready pod, page by page', async () => {
  cluster.pageItems = 1;
  cluster.put('services', service('web', labelled));
  cluster.put('endpointslices', slice('web', [pod('a1', '10.0.0.1'), pod('a2', '10.0.0.2', false)]));
  cluster.put(
    'endpointslices',
    slice('web', [pod('a1', 'fd00::1'), pod('a3', 'fd00::3')], HTTP, { addressType: 'IPv6' }),
  );
  cluster.put('services', service('other', {}));
  cluster.put('endpointslices', slice('other', [pod('b1', '10.0.0.9')]));
  // Of another platform: its Service has no label of stagedoor, but selects the pods of its Deployment.
  const template = { metadata: { labels: { app: 'search', tier: 'x' } } };
  cluster.put('deployments', {
    metadata: {
      ...{ name: 'search', namespace: 'mcp-servers' },
      labels: { 'app.kubernetes.io/managed-by': 'mcp-platform', 'mcp-template.io/template-name': 'search' },
    },
    spec: { template },
  });
  cluster.put('services', service('search', {}, { selector: { app: 'search' } }));
  cluster.put(
    'endpointslices',
    slice(
      'search',
      [pod('c1', '10.0.0.3')],
      [
        { name: 'metrics', port: 9100 },
        { name: 'mcp', port: 7000 },
      ],
    ),
  );
  const { gateway } = await gatewayOf();
  const { added, skipped, reached } = await gateway.sync();
  assert.equal(reached, [`${cluster.url} (namespace mcp-servers)`]);
  assert.is(added.length, 3);
  assert.equal(endpoints(gateway), {
    'web-a1000000': 'http://10.0.0.1:8080/mcp',
    'web-a3000000': 'http://[fd00::3]:8080/mcp',
    'search-c1000000': 'http://10.0.0.3:7000/mcp',
  });
  assert.equal(skipped, [{ template: 'web', name: 'mcp-servers/pod-a2', reason: 'it is not ready' }]);
  assert.ok(cluster.seen.filter((line) => line === 'list services 200').length >= 3);
});

test('looks into one namespace or all, and removes only what it looked at', async () => {
  cluster.put('services', service('web', labelled, {}, 'tools'));
  cluster.put('endpointslices', slice('web', [pod('d1', '10.0.1.1')], HTTP, { namespace: 'tools' }));
  const { gateway } = await gatewayOf();
  assert.equal((await gateway.sync()).added, []);
  assert.equal((await gateway.sync({ namespace: 'tools' })).added.length, 1);
  for (const asked of [{}, { namespace: 'tool' }]) assert.equal((await gateway.sync(asked)).removed, []);
  assert.equal((await gateway.sync({ namespace: '*' })).unchanged.length, 1);
  const labels = { 'app.kubernetes.io/managed-by': 'mcp-platform', 'mcp-template.io/template-name': 'web' };
  const pods = { metadata: { labels: { app: 'x' } } };
  cluster.put('deployments', {
    metadata: { name: 'x', namespace: 'other', labels },
    spec: { template: pods },
  });
  cluster.put('services', service('x', {}, { selector: { app: 'x' } }, 'tools'));
  cluster.put('endpointslices', slice('x', [pod('e1', '10.0.1.2')], HTTP, { namespace: 'tools' }));
  cluster.put('endpointslices', slice('web', [pod('f1', '10.0.1.3')], HTTP, { namespace: 'other' }));
  assert.equal((await gateway.sync({ namespace: '*' })).added, []);
  cluster.remove('endpointslices', slice('web', [], HTTP, { namespace: 'tools' }));
  assert.equal((await gateway.sync({ namespace: '*' })).removed, [{ template: 'web', id: 'web-d1000000' }]);
});

test('looks into one namespace of a cluster after the other', async () => {
  const { gateway } = await gatewayOf();
  cluster.held = [];
  const syncs = ['a', 'b', '*', 'c'].map((namespace) => gateway.sync({ namespace }));
  for (let lists = 0; lists < syncs.length; lists += 1) {
    await until(() => cluster.held?.length === 3, 'one namespace is listed');
    for (let turns = 0; turns < 50; turns += 1) await turn();
    assert.is(cluster.held.length, 3);
    for (const answer of cluster.held.splice(0)) answer();
  }
  await Promise.all(syncs);
});

test('refuses a sync while 32 are under way, and makes others after them', async () => {
  const { gateway } = await gatewayOf();
  cluster.held = [];
  const syncs = Array.from({ length: 32 }, (_, n) => gateway.sync({ namespace: `n${n}` }));
  assert.is(await codeOf(gateway.sync({ namespace: 'one-more' })), 'QUEUE_FULL');
  await until(() => cluster.held?.length === 3, 'one namespace is listed');
  const { held } = cluster;
  cluster.held = undefined;
  for (const answer of held) answer();
  await Promise.all(syncs);
  assert.is((await gateway.sync({ namespace: 'one-more' })).reached.length, 1);
});

test('skips a Service without a TCP port, or with several of which none has a usual name', async () => {
  cluster.put('services', service('web', labelled));
  const { gateway } = await gatewayOf();
  const several = [
    { name: 'a', port: 1000 },
    { name: 'b', port: 2000 },
  ];
  for (const [ports, reason] of [
    [several, 'it has several ports: name one mcp'],
    [[{ name: 'mcp', port: 1000, protocol: 'UDP' }], 'it has no TCP port'],
    [[], 'it has no TCP port'],
  ] as const) {
    cluster.put('endpointslices', slice('web', [pod('a1', '10.0.0.1')], ports));
    assert.is((await gateway.sync()).skipped[0]?.reason, reason);
  }
});

test('follows pods through bookmarks, ended watches, forgotten versions, renewed tokens and lost connections', async () => {
  cluster.put('services', service('web', labelled));
  const { gateway, notices } = await gatewayOf();
  await gateway.followSources();
  await cluster.watched();
  let received = next(gateway, 'instance.registered');
  cluster.put('endpointslices', slice('web', [pod('a1', '10.0.0.1')]));
  assert.is(await received, 'web-a1000000');

  // The next watch continues from the bookmark.
  cluster.bookmark();
  received = next(gateway, 'instance.deregistered');
  cluster.put('endpointslices', slice('web', [pod('a1', '10.0.0.1', false)]));
  assert.is(await received, 'web-a1000000');
  const before = cluster.seen.length;
  cluster.bookmark();
  cluster.endWatches();
  while (cluster.seen.slice(before).filter((line) => line.startsWith('watch')).length < 3)
    await cluster.watched(1).then(() => new Promise(setImmediate));
  const versions = cluster.seen.slice(before).filter((line) => / from /.test(line));
  assert.is(new Set(versions.map((line) => line.replace(/.* from /, ''))).size, 1, versions.join());

  // A change between two watches, which the server has forgotten by the second one.
  await cluster.watched();
  received = next(gateway, 'instance.registered');
  cluster.endWatches();
  cluster.putUnseen('endpointslices', slice('web', [pod('a2', '10.0.0.2')]));
  assert.is(await received, 'web-a2000000');

  await cluster.watched();
  await token('second-token');
  cluster.token = 'second-token';
  cluster.cut();
  await cluster.watched();
  received = next(gateway, 'instance.registered');
  cluster.put('endpointslices', slice('web', [pod('a3', '10.0.0.3')]));
  assert.is(await received, 'web-a3000000');
  assert.ok(
    notices.every((line) => !line.includes('token')),
    notices.join('\n'),
  );
});

test('follows with the token that is in the kubeconfig now', async () => {
  cluster.put('services', service('web', labelled));
  const { gateway } = await gatewayOf(undefined, { user: { token: cluster.token } });
  await gateway.followSources();
  await cluster.watched();
  cluster.token = 'second-token';
  await writeConfig({ user: { token: cluster.token } });
  cluster.cut();
  await cluster.watched();
  const received = next(gateway, 'instance.registered');
  cluster.put('endpointslices', slice('web', [pod('a1', '10.0.0.1')]));
  assert.is(await received, 'web-a1000000');
});

test('does not ask a cluster without end that has forgotten every version', async () => {
  const { gateway } = await gatewayOf();
  await gateway.followSources();
  await cluster.watched();
  cluster.expireAll();
  const before = cluster.seen.length;
  cluster.endWatches();
  const watches = () => cluster.seen.slice(before).filter((line) => line.startsWith('watch')).length;
  await becomes(() => watches() >= 3, true);
  await delay(1_000);
  assert.ok(watches() < 20, `${watches()}`);
});

test('a cluster that refuses the token leads to a warning, and removes nothing', async () => {
  cluster.put('services', service('web', labelled));
  cluster.put('endpointslices', slice('web', [pod('a1', '10.0.0.1')]));
  const { gateway } = await gatewayOf();
  await gateway.sync();
  cluster.token = 'another';
  cluster.refusal = 'Unauthorized:\n  the token has expired';
  const { removed, reached, warnings } = await gateway.sync();
  assert.equal([removed, reached], [[], []]);
  assert.ok(
    warnings.some((line) => /answers 401 for \w+: Unauthorized: the token has expired$/.test(line)),
    warnings.join(),
  );
  assert.equal(Object.keys(endpoints(gateway)), ['web-a1000000']);
});

test('closing ends connections to a cluster that are still being made', async () => {
  const silent = createServer();
  try {
    const server = `https://127.0.0.1:${await portOf(silent)}`;
    const { gateway } = await gatewayOf(undefined, { cluster: { server } });
    const connected: Promise<Socket[]> = once(silent, 'connection');
    const synced = gateway.sync();
    const [socket] = await connected;
    socket?.on('error', () => {}).resume();
    await gateway.close();
    await becomes(() => socket?.closed, true, 2_000);
    await synced;
  } finally {
    silent.close();
  }
});

test('gives up a list whose pages do not end', async () => {
  cluster.pageItems = 0;
  cluster.put('services', service('web', labelled));
  const { gateway } = await gatewayOf();
  const { reached, warnings } = await gateway.sync();
  assert.equal(reached, []);
  assert.ok(warnings.includes(`${cluster.url}: its list of services does not end`), warnings.join());
});

test('reports what is wrong with a kubeconfig', async () => {
  const { gateway } = await gatewayOf();
  const warningFor = async (config: object | string) => {
    await writeFile(folder('config'), typeof config === 'string' ? config : JSON.stringify(config));
    return (await gateway.sync()).warnings.filter((line) => line.startsWith('kubernetes')).join();
  };
  assert.match(await warningFor([]), 'is not a kubeconfig');
  assert.match(await warningFor('users:\n  - token: s3cret: x\n'), /config: is not a kubeconfig$/);
  assert.match(await warningFor({ 'current-context': 'gone' }), 'there is no context "gone"');
  // A pipe would stop the process until a program writes to it.
  await rm(folder('config'));
  execFileSync('mkfifo', [folder('config')]);
  const { warnings } = await gateway.sync();
  assert.match(warnings.join(), 'config: is not a file of up to 16 MiB');
  await rm(folder('config'));
});

test.needs(existsSync(ENDLESS), 'only Linux has such files')(
  'refuses a kubeconfig that is longer than its size says',
  async () => {
    const { gateway } = await gatewayOf();
    await rm(folder('config'));
    await symlink(ENDLESS, folder('config'));
    const { warnings } = await gateway.sync();
    assert.match(warnings.join(), 'config: is not a file of up to 16 MiB');
    await rm(folder('config'));
  },
);

test('finds the kubeconfig in the home folder, on Windows in the profile of the user', async () => {
  await gatewayOf();
  await mkdir(folder('.kube'));
  await rename(folder('config'), folder('.kube/config'));
  await rename(folder('token'), folder('.kube/token'));
  for (const name of ['HOME', 'USERPROFILE']) {
    const gateway = await createGateway({ discovery: { env: { ...NO_ENGINES, [name]: folder() } } });
    gateways.push(gateway);
    assert.ok((await gateway.sync()).reached.includes(`${cluster.url} (namespace mcp-servers)`), name);
  }
});

test('prefers the token file to the token, as kubectl does', async () => {
  const { gateway } = await gatewayOf(undefined, { user: { token: 'stale', tokenFile: 'token' } });
  const { reached, warnings } = await gateway.sync();
  assert.equal(reached, [`${cluster.url} (namespace mcp-servers)`], warnings.join());
});

test('no warning repeats the secrets of a kubeconfig', async () => {
  const server = cluster.url.replace('//', '//admin:s3cret@');
  for (const access of [{ user: { token: 's3cret\npart' } }, { cluster: { server } }]) {
    const { gateway } = await gatewayOf(undefined, access);
    const text = (await gateway.sync()).warnings.join('\n');
    assert.not.match(text, 's3cret', text);
    assert.match(text, /its token is not one word|without credentials/);
  }
});

test('sends exactly the kinds of requests that the RBAC manifest allows', async () => {
  const { gateway } = await gatewayOf();
  await gateway.followSources();
  await cluster.watched();
  const asked = new Set(cluster.seen.map((line) => line.split(' ', 2).join(' ')));
  const manifest = await readFile(
    new URL('../../../deploy/kubernetes/components/sync/rbac.yaml', import.meta.url),
    'utf8',
  );
  const role = parseAllDocuments(manifest)
    .map((document) => document.toJS())
    .find(({ kind }) => kind === 'Role');
  const allowed = role.rules.flatMap(({ resources, verbs }: { resources: string[]; verbs: string[] }) =>
    resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
  );
  assert.equal([...asked].sort(), allowed.sort());
});

/** Listens, and resolves with the port. */
async function portOf(server: Server): Promise<number> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

/** Connects what arrives to the cluster. */
function passOn(socket: Duplex): void {
  const behind = connect(Number(new URL(cluster.url).port), '127.0.0.1');
  socket.on('error', () => behind.destroy()).pipe(behind);
  behind.on('error', () => socket.destroy()).pipe(socket);
}

const openssl = test.needs(hasOpenssl(), 'no openssl here');
openssl('speaks TLS with a server whose certificate is for another name, by tls-server-name', async () => {
  makeAuthority(folder(), 'root');
  issueCertificate(folder(), 'root', 'server', 'api.internal');
  const [cert, key] = await Promise.all(['server.crt', 'server.key'].map((name) => readFile(folder(name))));
  const front = createTlsServer({ cert, key }, passOn);
  const server = `https://127.0.0.1:${await portOf(front)}`;
  const named = { server, 'certificate-authority': 'root.crt' };
  try {
    for (const [access, isReached] of [
      [{ ...named, 'tls-server-name': 'api.internal' }, true],
      [{ ...named, 'tls-server-name': 'other.internal' }, false],
      [named, false],
    ] as const) {
      const { reached, warnings } = await (await gatewayOf(undefined, { cluster: access })).gateway.sync();
      assert.is(reached.length > 0, isReached, warnings.join());
    }
  } finally {
    front.close();
  }
});

test('reaches the server through the proxy of the kubeconfig, and refuses a kind of proxy that it does not know', async () => {
  const asked: string[] = [];
  const proxy = createHttpServer().on('connect', (request, socket) => {
    asked.push(String(request.url));
    const behind = connect(Number(new URL(cluster.url).port), '127.0.0.1');
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    socket.on('error', () => behind.destroy()).pipe(behind);
    behind.on('error', () => socket.destroy()).pipe(socket);
  });
  try {
    const server = 'http://cluster.invalid:6443';
    const reach = async (proxyUrl: string) => {
      const { gateway } = await gatewayOf(undefined, { cluster: { server, 'proxy-url': proxyUrl } });
      return gateway.sync();
    };
    const { reached, warnings } = await reach(`http://127.0.0.1:${await portOf(proxy)}`);
    assert.equal(reached, [`${server} (namespace mcp-servers)`], warnings.join());
    assert.equal([...new Set(asked)], ['cluster.invalid:6443']);
    const refused = await reach('socks5://user:s3cret@127.0.0.1:1');
    assert.match(refused.warnings.join(), 'config: its proxy-url is not an http or https URL');
    assert.not.match(refused.warnings.join(), 's3cret');
  } finally {
    proxy.close();
  }
});

openssl('speaks TLS with the authority and the client certificate of the kubeconfig', async () => {
  for (const name of ['server', 'client']) makeSelfSigned(folder(), name);
  const pem = (name: string) => readFile(folder(name), 'utf8');
  const settings = {
    cert: await pem('server.crt'),
    key: await pem('server.key'),
    ca: await pem('client.crt'),
  };
  // In front of the cluster; it accepts only the client's certificate.
  const front = createTlsServer({ ...settings, requestCert: true, rejectUnauthorized: true }, passOn);
  const server = `https://127.0.0.1:${await portOf(front)}`;
  const authority = { server, 'certificate-authority': 'server.crt' };
  const certificate = { 'client-certificate': 'client.crt', 'client-key': 'client.key', tokenFile: 'token' };
  try {
    cluster.put('services', service('web', labelled));
    cluster.put('endpointslices', slice('web', [pod('a1', '10.0.0.1')]));
    const { gateway } = await gatewayOf(undefined, { cluster: authority, user: certificate });
    const { added, reached, warnings } = await gateway.sync();
    assert.equal(
      [added.length, reached],
      [1, [`${server} (namespace mcp-servers)`]],
      JSON.stringify(warnings),
    );

    const data = Buffer.from(await pem('client.crt')).toString('base64');
    const wrong: readonly (readonly [access: Parameters<typeof gatewayOf>[1], warning: RegExp])[] = [
      [{ cluster: authority }, /certificate required|socket|closed/i],
      [{ cluster: { server }, user: certificate }, /self-signed certificate/],
      [{ cluster: { server, 'certificate-authority-data': data }, user: certificate }, /self-signed/],
    ];
    for (const [access, warning] of wrong) {
      const outcome = await (await gatewayOf(undefined, access)).gateway.sync();
      assert.equal(outcome.reached, []);
      assert.match(String(outcome.warnings), warning);
    }
  } finally {
    front.close();
  }
});

test.run();
