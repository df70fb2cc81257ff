// The connection to a Kubernetes API server: its address and account (of the pod, or of a kubeconfig), lists with
// all their pages, and watches that continue from where they stopped.

import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { ConnectionOptions } from 'node:tls';
import type { Dispatcher } from 'undici';
import { definedFields, isJsonObject, type JsonObject } from '../domain/json/json.ts';
import { LIMITS } from '../domain/limits.ts';
import { bytesWithin } from '../domain/memory/bounded-bytes.ts';
import { sleep, systemClock, timeLimit } from '../domain/time/clock.ts';
import { kubeconfigs, POD_ACCOUNT } from './cluster-files.ts';
import { LoginProgram } from './login-program.ts';
import { type Credential, type DiscoveryContext, linesOf, SourceError } from './provider.ts';
import { readSourceFile } from './source-file.ts';

interface ClusterAccess {
  /** The address of the server, without a slash at its end. */
  readonly server: string;
  /**
   * The options of TLS. They always say whether the server is verified: else NODE_TLS_REJECT_UNAUTHORIZED would
   * decide, which is meant for others.
   */
  readonly tls: Pick<ConnectionOptions, 'ca' | 'servername'> & { readonly rejectUnauthorized: boolean };
  readonly proxy?: string;
  /**
   * The present credential. Called before each request, because tokens of pods are renewed, and once more with the
   * credential that the server refused. A token may have a line break at its end.
   */
  readonly credential: (refused?: Credential) => Promise<Credential>;
}

export interface Resource {
  readonly api: string;
  readonly plural: string;
  readonly labelSelector?: string;
}

/** The longest wait for one page of a list, in ms. */
const PAGE_MS = 5_000;
const PAGE_ITEMS = 500;
/** The most bytes of one page: an object has some kB, and at most 1.5 MB. */
export const MAX_PAGE_BYTES = 64 * 2 ** 20;
/** The time after which servers end a watch, in s; then a new one continues it. */
const WATCH_SECONDS = 290;
/** The least time between two watches of a resource, in ms. One that ends earlier, without an event, is a failure. */
const MIN_WATCH_MS = 1_000;
/** The longest silence of a watch, in ms, until the connection counts as lost; the server sends bookmarks. */
const SILENCE_MS = (WATCH_SECONDS + 30) * 1_000;

/**
 * The cluster of KUBECONFIG, else of this pod, else of the kubeconfig at home; undefined when there is none. Throws
 * SourceError.
 */
export async function clusterAccess(context: DiscoveryContext): Promise<ClusterAccess | undefined> {
  const { env } = context;
  const { KUBECONFIG: named, KUBERNETES_SERVICE_HOST: host } = env;
  if (!named && host && existsSync(join(POD_ACCOUNT, 'token'))) {
    const address = host.includes(':') ? `[${host}]` : host;
    return {
      server: `https://${address}:${env.KUBERNETES_SERVICE_PORT || 443}`,
      tls: { ca: textOf(join(POD_ACCOUNT, 'ca.crt')), rejectUnauthorized: true },
      credential: async () => ({ token: textOf(join(POD_ACCOUNT, 'token')) }),
    };
  }
  const present = kubeconfigs(env).filter((file) => existsSync(file));
  if (named && present.length === 0) throw new SourceError('KUBECONFIG names no existing file');
  return present.length === 0 ? undefined : readKubeconfig(present, context);
}

/** Reads the current context. An entry comes from the first file that has its name, as in kubectl. */
async function readKubeconfig(
  files: readonly string[],
  { env, signal, logins }: DiscoveryContext,
): Promise<ClusterAccess | undefined> {
  const documents = await documentsOf(files);
  const context = documents.map(({ document }) => document['current-context']).find(Boolean);
  if (context === undefined) return undefined;
  const chosen = sectionOf(documents, 'contexts', 'context', context).fields;
  const cluster = sectionOf(documents, 'clusters', 'cluster', chosen.cluster);
  const user = sectionOf(documents, 'users', 'user', chosen.user);
  const { server } = cluster.fields;
  if (typeof server !== 'string' || !/^https?:\/\/[^@]+$/.test(server) || !URL.canParse(server))
    throw new SourceError(`${cluster.file}: its server is not an http or https URL without credentials`);
  const ca = dataOf(cluster, 'certificate-authority');
  const rejectUnauthorized = cluster.fields['insecure-skip-tls-verify'] !== true;
  const { 'tls-server-name': servername } = cluster.fields;
  const proxy = proxyOf(cluster);
  const access = {
    server: server.replace(/\/+$/, ''),
    tls: {
      ...definedFields({ ca, servername: servername ? String(servername) : undefined }),
      rejectUnauthorized,
    },
    ...definedFields({ proxy }),
  };
  const certificate = definedFields({
    cert: dataOf(user, 'client-certificate'),
    key: dataOf(user, 'client-key'),
  });
  const { exec, token, tokenFile } = user.fields;
  // As in kubectl, a program is asked only when there is nothing else.
  if (exec && token === undefined && tokenFile === undefined && certificate.cert === undefined) {
    const shown = clusterInfo(cluster.fields, ca);
    const key = JSON.stringify([user.file, exec, shown]);
    let login = logins.get(key);
    if (login === undefined) {
      login = new LoginProgram(exec, { cluster: { ...shown, server }, file: user.file, env, signal });
      logins.clear(); // only the current context is used
      logins.set(key, login);
    }
    return { ...access, credential: login.credential };
  }
  return {
    ...access,
    credential: async () => {
      // As in kubectl: the file may have been renewed since.
      if (typeof tokenFile === 'string')
        return { ...certificate, token: textOf(resolve(dirname(user.file), tokenFile)) };
      return typeof token === 'string' ? { ...certificate, token } : certificate;
    },
  };
}

interface Kubeconfig {
  readonly file: string;
  readonly document: JsonObject;
}

async function documentsOf(files: readonly string[]): Promise<readonly Kubeconfig[]> {
  const { parse } = await import('yaml');
  return files.map((file) => {
    const text = textOf(file);
    let document: unknown;
    try {
      document = parse(text, { logLevel: 'error' });
    } catch {
      // The message of the parser quotes the text, which has tokens.
    }
    if (!isJsonObject(document)) throw new SourceError(`${file}: is not a kubeconfig`);
    return { file, document };
  });
}

/** An entry of a list, and the file that has it. */
interface Section {
  readonly file: string;
  readonly fields: JsonObject;
}

function sectionOf(documents: readonly Kubeconfig[], list: string, entry: string, name: unknown): Section {
  for (const { file, document } of documents) {
    const members: unknown = document[list];
    const found = (Array.isArray(members) ? members : []).find((each) => Object(each).name === name);
    if (isJsonObject(found?.[entry])) return { file, fields: found[entry] };
  }
  throw new SourceError(`${documents[0]?.file}: there is no ${entry} "${name}"`);
}

/** Not in the message: a URL of a proxy may have a password. */
function proxyOf({ file, fields }: Section): string | undefined {
  const { 'proxy-url': url } = fields;
  if (!url) return undefined;
  if (typeof url === 'string' && /^https?:\/\//.test(url) && URL.canParse(url)) return url;
  throw new SourceError(`${file}: its proxy-url is not an http or https URL`);
}

/** What a section has itself, as `<name>-data`, or in a file that it names. */
function dataOf({ file, fields }: Section, name: string): string | undefined {
  const { [`${name}-data`]: data, [name]: path } = fields;
  if (typeof data === 'string') return Buffer.from(data, 'base64').toString('utf8');
  return typeof path === 'string' ? textOf(resolve(dirname(file), path)) : undefined;
}

function textOf(path: string): string {
  return readSourceFile(path).toString('utf8');
}

/** The data of the cluster in the form that a login program gets. */
function clusterInfo(fields: JsonObject, ca: string | undefined): JsonObject {
  const extensions = Array.isArray(fields.extensions) ? fields.extensions : [];
  const config = extensions.find((each) => Object(each).name === 'client.authentication.k8s.io/exec');
  return definedFields({
    server: fields.server,
    'tls-server-name': fields['tls-server-name'],
    'insecure-skip-tls-verify': fields['insecure-skip-tls-verify'],
    'certificate-authority-data': ca === undefined ? undefined : Buffer.from(ca).toString('base64'),
    'proxy-url': fields['proxy-url'],
    config: Object(config).extension,
  });
}

type Query = Readonly<Record<string, string>>;

/** The value of an answer. Throws SourceError for one that is too long. */
async function bodyOf({ body }: Response): Promise<unknown> {
  const bytes = body === null ? Buffer.alloc(0) : await bytesWithin(body, MAX_PAGE_BYTES);
  if (bytes === undefined) throw new SourceError(`an answer has more than ${MAX_PAGE_BYTES / 2 ** 20} MiB`);
  return JSON.parse(bytes.toString('utf8'));
}

/** One API server, and the namespace that is searched. */
export class Cluster {
  readonly address: string;
  readonly #access: ClusterAccess;
  readonly #namespace: string;
  readonly #signal: AbortSignal;
  #client: ReturnType<typeof clientOf> | undefined;

  constructor(access: ClusterAccess, { namespace, signal }: Pick<DiscoveryContext, 'namespace' | 'signal'>) {
    this.#access = access;
    this.#namespace = namespace;
    this.#signal = signal;
    this.address = access.server;
  }

  async list(resource: Resource): Promise<readonly JsonObject[]> {
    const items: JsonObject[] = [];
    let next = '';
    for (let pages = 0; pages < LIMITS.listPages; pages += 1) {
      const query = { limit: String(PAGE_ITEMS), ...(next === '' ? {} : { continue: next }) };
      const page = await this.#json(resource, query);
      for (const item of Array.isArray(page.items) ? page.items : [])
        if (isJsonObject(item)) items.push(item);
      next = String(Object(page.metadata).continue ?? '');
      if (next === '') return items;
    }
    throw new SourceError(`${this.address}: its list of ${resource.plural} does not end`);
  }

  async version(resource: Resource): Promise<string> {
    const page = await this.#json(resource, { limit: '1' });
    return String(Object(page.metadata).resourceVersion ?? '');
  }

  /**
   * Reports every change after the version until the signal aborts, or the server has forgotten the version. Throws
   * SourceError when the server is lost.
   */
  async watch(resource: Resource, version: string, onChange: () => void, signal: AbortSignal): Promise<void> {
    let at = version;
    while (!signal.aborted) {
      const bounds = { allowWatchBookmarks: 'true', timeoutSeconds: String(WATCH_SECONDS) };
      const query = { watch: '1', ...bounds, resourceVersion: at };
      const beganAtMs = systemClock.now();
      let events = 0;
      const isExpired = await this.#events(resource, query, signal, (event) => {
        events += 1;
        at = event.version || at;
        if (!event.isBookmark) onChange();
      });
      if (isExpired || signal.aborted) return;
      const restMs = beganAtMs + MIN_WATCH_MS - systemClock.now();
      if (restMs <= 0) continue;
      if (events === 0)
        throw new SourceError(`${this.address}: its watch of ${resource.plural} ends at once`);
      await sleep(systemClock.background, restMs, signal).catch(() => undefined);
    }
  }

  /** Reads one watch to its end. True when the version is too old for the server. */
  async #events(
    resource: Resource,
    query: Query,
    signal: AbortSignal,
    onEvent: (event: { readonly version: string; readonly isBookmark: boolean }) => void,
  ): Promise<boolean> {
    try {
      const response = await this.#ask(resource, query, signal);
      if (response.status === 410) {
        await response.body?.cancel();
        return true;
      }
      for await (const line of linesOf(response.body ?? [])) {
        const { type, object } = Object(JSON.parse(line));
        if (type === 'ERROR') {
          if (Object(object).code === 410) return true;
          throw new SourceError(`${this.address}: ${Object(object).message ?? 'its watch failed'}`);
        }
        const version = String(Object(Object(object).metadata).resourceVersion ?? '');
        onEvent({ version, isBookmark: type === 'BOOKMARK' });
      }
      return false;
    } catch (thrown) {
      if (signal.aborted) return false;
      throw this.#failure(thrown);
    }
  }

  async #json(resource: Resource, query: Query): Promise<JsonObject> {
    try {
      const response = await this.#ask(resource, query, this.#signal, PAGE_MS);
      const body = await bodyOf(response);
      if (isJsonObject(body)) return body;
      throw new SourceError(`${this.address}: it does not answer as a Kubernetes API server does`);
    } catch (thrown) {
      throw this.#failure(thrown);
    }
  }

  /**
   * Sends a request; after a 401 once more, because the token may have been renewed. `answerMs`: longest wait for
   * an answer and its body, without the login. Throws for every failure, except the 410 of a watch.
   */
  async #ask(
    { api, plural, ...selector }: Resource,
    query: Query,
    signal: AbortSignal,
    answerMs?: number,
  ): Promise<Response> {
    const within = this.#namespace === '*' ? '' : `/namespaces/${encodeURIComponent(this.#namespace)}`;
    const url = `${this.#access.server}${api}${within}/${plural}?${new URLSearchParams({ ...query, ...selector })}`;
    this.#client ??= clientOf(this.#access, this.#signal);
    const client = await this.#client;
    const send = (credential: Credential) =>
      client(
        url,
        credential,
        answerMs === undefined ? signal : AbortSignal.any([signal, timeLimit(systemClock, answerMs)]),
      );
    const credential = await this.#access.credential();
    let response = await send(credential);
    if (response.status === 401) {
      await response.body?.cancel();
      response = await send(await this.#access.credential(credential));
    }
    if (response.ok || (response.status === 410 && 'watch' in query)) return response;
    const body = await bodyOf(response).catch(() => undefined); // no JSON: the status says enough
    const message = isJsonObject(body) && typeof body.message === 'string' ? `: ${body.message}` : '';
    throw new SourceError(`${this.address} answers ${response.status} for ${plural}${message}`);
  }

  #failure(thrown: unknown): SourceError {
    if (thrown instanceof SourceError) return thrown;
    const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
    const reason = cause instanceof Error ? cause.message || cause.name : String(cause);
    const why = cause instanceof Error && cause.name === 'TimeoutError' ? 'it does not answer' : reason;
    return new SourceError(`${this.address}: ${why}`, { cause: thrown });
  }
}

/**
 * Makes the function that sends requests until `closing`. A new certificate needs new connections. Redirects are
 * not followed.
 */
async function clientOf({ server, tls, proxy }: ClusterAccess, closing: AbortSignal) {
  const { Agent, fetch, ProxyAgent } = await import('undici');
  const agentFor = ({ cert, key }: Credential): Dispatcher => {
    const connect = { ...tls, ...definedFields({ cert, key }), signal: closing };
    return proxy === undefined
      ? new Agent({ connect, bodyTimeout: SILENCE_MS })
      : new ProxyAgent({ uri: proxy, requestTls: connect, bodyTimeout: SILENCE_MS });
  };
  let current: { readonly cert: string | undefined; readonly agent: Dispatcher } | undefined;
  return async (url: string, credential: Credential, signal: AbortSignal): Promise<Response> => {
    const bearer = credential.token?.trim();
    // The error of fetch would quote it.
    if (bearer !== undefined && !/^[\x21-\x7e]*$/.test(bearer))
      throw new SourceError(`${server}: its token is not one word of plain ASCII`);
    const headers = {
      Accept: 'application/json',
      ...(bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` }),
    };
    if (current?.cert !== credential.cert || current === undefined) {
      current?.agent.close().catch(() => {
        // Its watches go on until they end; nothing can be done about a failure.
      });
      current = { cert: credential.cert, agent: agentFor(credential) };
    }
    const response: unknown = await fetch(url, {
      dispatcher: current.agent,
      headers,
      signal,
      redirect: 'error',
    });
    return response as Response; // the same class, declared twice
  };
}
