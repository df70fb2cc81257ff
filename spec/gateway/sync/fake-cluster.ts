// A fake Kubernetes API server with what sync uses: paged lists, watches from a version, bookmarks, expired versions, renewed
// tokens. Objects follow the API documentation; it was not compared with a real cluster.

import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Fields = Readonly<Record<string, unknown>>;

export interface FakeObject extends Fields {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
}

export type Plural = 'services' | 'endpointslices' | 'deployments';

interface Watcher {
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly response: ServerResponse;
}

export function service(
  name: string,
  metadata: object,
  spec: object = {},
  namespace = 'mcp-servers',
): FakeObject {
  return { kind: 'Service', metadata: { name, namespace, ...metadata }, spec };
}

export const pod = (uid: string, ip: string, ready = true) => ({ uid, ip, ready });

export const HTTP = [{ name: '', port: 8080, protocol: 'TCP' }];

export function slice(
  of: string,
  pods: readonly ReturnType<typeof pod>[],
  ports: readonly object[] = HTTP,
  more: object = {},
): FakeObject {
  const { namespace = 'mcp-servers', addressType = 'IPv4' } = Object(more);
  const labels = { 'kubernetes.io/service-name': of };
  const endpoints = pods.map(({ uid, ip, ready }) => ({
    addresses: [ip],
    conditions: { ready },
    targetRef: { kind: 'Pod', name: `pod-${uid}`, uid: `${uid.padEnd(8, '0')}-1111-2222` },
  }));
  const metadata = { name: `${of}-${addressType.toLowerCase()}`, namespace, labels };
  return { kind: 'EndpointSlice', metadata, addressType, ports, endpoints };
}

const APIS: Readonly<Record<string, string>> = {
  services: '/api/v1',
  endpointslices: '/apis/discovery.k8s.io/v1',
  deployments: '/apis/apps/v1',
};

export class FakeCluster {
  /** The only token that is accepted. */
  token = 'first-token';
  /** The message about any other token. */
  refusal = 'Unauthorized';
  /** Items per page, whatever limit is requested. */
  pageItems = 500;
  /** Set: the answers wait here until they are sent by the spec. */
  held: (() => void)[] | undefined;
  /** One line for each request: `list services 200`, `watch services from 4`. */
  readonly seen: string[] = [];
  readonly #objects = new Map<string, FakeObject>();
  readonly #watchers = new Set<Watcher>();
  readonly #server = createServer((request, response) => {
    const answer = () => this.#answer(request.url ?? '', request.headers.authorization, response);
    if (this.held === undefined) answer();
    else this.held.push(answer);
  });
  #version = 1;
  /** Changes before this version have expired. */
  #oldest = 0;

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async listen(): Promise<void> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
  }

  /** Adds or changes an object and notifies the watches. */
  put(plural: Plural, object: FakeObject): void {
    const key = keyOf(plural, object);
    const type = this.#objects.has(key) ? 'MODIFIED' : 'ADDED';
    this.#emit(plural, type, object);
    this.#objects.set(key, object);
  }

  remove(plural: Plural, object: FakeObject): void {
    this.#objects.delete(keyOf(plural, object));
    this.#emit(plural, 'DELETED', object);
  }

  /** Changes an object without notifying, as while a watch is disconnected; earlier versions expire. */
  putUnseen(plural: Plural, object: FakeObject): void {
    this.#version += 1;
    this.#objects.set(keyOf(plural, object), object);
    this.#oldest = this.#version;
  }

  /** From now on every version is too old for a watch. */
  expireAll(): void {
    this.#oldest = Number.POSITIVE_INFINITY;
  }

  /** Sends a bookmark with a new version to all watches. */
  bookmark(): void {
    this.#version += 1;
    for (const { response } of this.#watchers) {
      const metadata = { resourceVersion: String(this.#version) };
      response.write(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata } })}\n`);
    }
  }

  /** Ends all watches cleanly, as servers do after some time. */
  endWatches(): void {
    for (const { response } of this.#watchers) response.end();
  }

  /** Destroys all connections. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  /** Resolves when this many watches are open. */
  async watched(count = 3): Promise<void> {
    while (this.#watchers.size < count) await once(this.#server, 'watched');
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    if (this.#server.listening) await once(this.#server.close(), 'close');
  }

  #answer(path: string, authorization: string | undefined, response: ServerResponse): void {
    const url = new URL(path, 'http://cluster');
    const [, api = '', namespace, plural = ''] =
      /^(\/.+\/v1)(?:\/namespaces\/([^/]+))?\/([a-z]+)$/.exec(url.pathname) ?? [];
    const isWatch = url.searchParams.get('watch') === '1';
    const send = (status: number, body: Fields) => {
      this.seen.push(`${isWatch ? 'watch' : 'list'} ${plural} ${status}`);
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    const failure = (code: number, message: string) => send(code, { kind: 'Status', code, message });
    if (authorization !== `Bearer ${this.token}`) {
      failure(401, this.refusal);
      return;
    }
    if (APIS[plural] !== api) {
      failure(404, 'the server could not find the requested resource');
      return;
    }
    if (isWatch) {
      this.#watch({ plural, namespace, response }, url.searchParams, failure);
      return;
    }
    const items = this.#listed(plural, namespace, url.searchParams.get('labelSelector'));
    const from = Number(url.searchParams.get('continue') ?? 0);
    const to = from + Math.min(this.pageItems, Number(url.searchParams.get('limit') ?? this.pageItems));
    const metadata = {
      resourceVersion: String(this.#version),
      continue: to < items.length ? String(to) : '',
    };
    send(200, { kind: 'List', metadata, items: items.slice(from, to) });
  }

  #watch(watcher: Watcher, query: URLSearchParams, failure: (code: number, message: string) => void): void {
    const from = Number(query.get('resourceVersion'));
    this.seen.push(`watch ${watcher.plural} from ${from}`);
    if (query.get('allowWatchBookmarks') !== 'true') {
      failure(400, 'no bookmarks wanted');
      return;
    }
    const { response } = watcher;
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.flushHeaders();
    if (from < this.#oldest) {
      const object = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' };
      response.end(`${JSON.stringify({ type: 'ERROR', object })}\n`);
      return;
    }
    this.#watchers.add(watcher);
    response.on('close', () => this.#watchers.delete(watcher));
    this.#server.emit('watched');
  }

  #listed(plural: string, namespace: string | undefined, selector: string | null): readonly FakeObject[] {
    const [name = '', value] = (selector ?? '').split('=');
    return [...this.#objects]
      .filter(([key]) => key.startsWith(`${plural}/`))
      .map(([, object]) => object)
      .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
      .filter(({ metadata }) => selector === null || metadata.labels?.[name] === value);
  }

  #emit(plural: string, type: string, object: FakeObject): void {
    this.#version += 1;
    const metadata = { ...object.metadata, resourceVersion: String(this.#version) };
    for (const watcher of this.#watchers) {
      if (watcher.plural !== plural) continue;
      if (watcher.namespace !== undefined && watcher.namespace !== metadata.namespace) continue;
      watcher.response.write(`${JSON.stringify({ type, object: { ...object, metadata } })}\n`);
    }
  }
}

function keyOf(plural: string, { metadata }: FakeObject): string {
  return `${plural}/${metadata.namespace}/${metadata.name}`;
}
