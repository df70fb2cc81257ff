// Clusters with thousands of Services, and a watch whose line does not end.

import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline, Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { kubernetes } from '../../../src/discovery/kubernetes.ts';
import type { Source } from '../../../src/discovery/provider.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { FakeCluster, type FakeObject, type Plural } from './fake-cluster.ts';

const test = suite('large clusters', { timeoutMs: 60_000 });
const folder = folderOfEach(test);
const MIB = 2 ** 20;

async function sourceAt(server: string, signal: AbortSignal): Promise<Source> {
  const named = (name: string, kind: string, fields: object) => [{ name, [kind]: fields }];
  const config = {
    'current-context': 'here',
    contexts: named('here', 'context', { cluster: 'c', user: 'u' }),
    clusters: named('c', 'cluster', { server }),
    users: named('u', 'user', { token: 'first-token' }),
  };
  await writeFile(folder('config'), JSON.stringify(config)); // JSON is YAML, too
  const env = { KUBECONFIG: folder('config') };
  const context = { env, signal, namespace: 'n', hintsOf: () => undefined, logins: new Map() };
  const [source] = await kubernetes(context);
  assert.ok(source);
  return source;
}

test('the pods of ten thousand Services are found in a time that grows with their number', async () => {
  const cluster = new FakeCluster();
  await cluster.listen();
  try {
    const closing = new AbortController();
    const source = await sourceAt(cluster.url, closing.signal);
    const put = (plural: Plural, fields: FakeObject) => cluster.put(plural, fields);
    const managed = { 'app.kubernetes.io/managed-by': 'mcp-platform' };
    for (let n = 0; n < 10_000; n += 1) {
      const metadata = { name: `s${n}`, namespace: 'n' };
      const isOwn = n % 2 === 0;
      const labels = isOwn ? { 'stagedoor/template': `t${n}` } : {};
      put('services', { metadata: { ...metadata, labels }, spec: { selector: { app: `a${n}` } } });
      if (!isOwn)
        put('deployments', {
          metadata: { ...metadata, labels: { ...managed, 'mcp-template.io/template-name': `t${n}` } },
          spec: { template: { metadata: { labels: { app: `a${n}` } } } },
        });
      put('endpointslices', {
        metadata: { ...metadata, labels: { 'kubernetes.io/service-name': `s${n}` } },
        addressType: 'IPv4',
        ports: [{ port: 80 }],
        endpoints: [{ addresses: ['10.0.0.1'], targetRef: { kind: 'Pod', name: `p${n}`, uid: `u${n}` } }],
      });
    }
    await source.list(); // loads the client
    const { user } = process.cpuUsage();
    const { found } = await source.list();
    const spentMs = (process.cpuUsage().user - user) / 1_000;
    assert.equal(
      [found.length, found[1]?.template, new Set(found.map(({ template }) => template)).size],
      [10_000, 't1', 10_000],
    );
    assert.ok(spentMs < 2_500, `${spentMs} ms`);
    closing.abort();
  } finally {
    await cluster.close();
  }
});

test('a page of a list ends when it is too long', async () => {
  let sent = 0;
  const server = createServer((_, response) => {
    const endless = (function* () {
      for (;;) {
        sent += 1;
        yield Buffer.alloc(MIB, ' ');
      }
    })();
    return pipeline(Readable.from(endless), response, () => {});
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const closing = new AbortController();
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const source = await sourceAt(url, closing.signal);
    const error = await source.list().catch((thrown: unknown) => thrown);
    assert.match(String(error), /SourceError: .*an answer has more than 64 MiB/);
    assert.ok(sent < 3 * 64 + 100, `${sent} MiB`);
  } finally {
    closing.abort();
    server.closeAllConnections();
    server.close();
  }
});

test('a watch ends at a line that is too long', async () => {
  const server = createServer((request, response) => {
    const isWatch = request.url?.includes('watch=1') === true;
    if (!isWatch) return response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items: [] }));
    const endless = (function* () {
      for (;;) yield Buffer.alloc(MIB / 16, 'x');
    })();
    return pipeline(Readable.from(endless), response, () => {});
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const closing = new AbortController();
  try {
    const source = await sourceAt(
      `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      closing.signal,
    );
    const error = await source
      .watch(
        () => {},
        () => {},
      )
      .catch((thrown: unknown) => thrown);
    assert.match(String(error), /SourceError: .*a line of its answer has more than 8 MiB/);
  } finally {
    closing.abort();
    server.closeAllConnections();
    server.close();
  }
});

test('a watch that ends after each event is not asked for again at once', async () => {
  let watches = 0;
  const server = createServer((request, response) => {
    const metadata = { resourceVersion: '1' };
    if (request.url?.includes('watch=1') !== true)
      return response.end(JSON.stringify({ metadata, items: [] }));
    watches += 1;
    return response.end(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata } })}\n`);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const closing = new AbortController();
  try {
    const { port } = server.address() as AddressInfo;
    const source = await sourceAt(`http://127.0.0.1:${port}`, closing.signal);
    const watching = source.watch(
      () => {},
      () => {},
    );
    await delay(700);
    closing.abort();
    await watching;
    assert.ok(watches <= 6, `${watches} watches of three resources`);
  } finally {
    closing.abort();
    server.closeAllConnections();
    server.close();
  }
});

test.run();
