// Decides when instances are looked for outside the gateway, and at which sources: once for `gateway sync`, which
// also reads the registry file again, and after each change while the gateway runs with --sync. src/discovery/
// queries the sources, registry-sync.ts applies a listing. Source: ADRs 59 and 65.

import { Subject } from 'rxjs';
import { docker, podman } from '../discovery/containers.ts';
import { kubernetes } from '../discovery/kubernetes.ts';
import {
  type DiscoveryContext,
  type Provider,
  type Source,
  SourceError,
  type TemplateHints,
} from '../discovery/provider.ts';
import { droppingErrors } from '../domain/errors/dropping-errors.ts';
import { messageOf } from '../domain/errors/errors.ts';
import { shuttingDown } from '../domain/errors/gateway-errors.ts';
import { tooMany } from '../domain/errors/request-errors.ts';
import type {
  ImportReport,
  SyncOptions,
  SyncOutcome,
  SyncReport,
} from '../domain/instances/found-instances.ts';
import { type Clock, sleep } from '../domain/time/clock.ts';
import { SerialQueue } from '../domain/time/serial-queue.ts';
import { readAtRest } from '../registry/files/file-at-rest.ts';
import { RegistryFileError, readRegistryFile } from '../registry/files/registry-file.ts';
import type { Registry } from '../registry/registry.ts';
import { cameFrom, importContents, syncListing } from '../registry/registry-sync.ts';
import { repeatUntilDone } from '../registry/repeat-until-done.ts';
import type { DiscoveryOptions } from './gateway-types.ts';

/** The parts of a gateway that sync needs. Without `env` there are no sources. */
interface SyncDeps extends Partial<DiscoveryOptions> {
  readonly registry: Registry;
  readonly clock: Clock;
  readonly definitions: Pick<ReadonlyMap<string, TemplateHints>, 'get'>;
  /** Memory that this process may use. Default: see ParseOptions. */
  readonly memoryBytes?: number | undefined;
}

/** The providers of sources, by name. */
const DISCOVERY_PROVIDERS: Readonly<Record<string, Provider>> = { docker, podman, kubernetes };
const DEFAULT_NAMESPACE = 'mcp-servers';
/** Waits before a lost source is followed again, in ms. */
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 15_000;
/** A source that could be followed for longer than the wait before, or for this long, begins with the first wait again. */
const FOLLOWED_MS = 5_000;
/** The most syncs that callers have under way, each of which waits for those before it at the same cluster. */
export const MAX_RUNS = 32;
/** Interval of the search for new engines, in ms. */
const FIND_SOURCES_MS = 30_000;
const NOTHING_FOUND = 'no container engine and no Kubernetes cluster is configured or found on this machine';
const SOME_UNUSABLE = 'some entries cannot be used';

/** The synchronizations of one gateway; `close` ends the ones that follow changes. */
export class Sync {
  readonly #deps: SyncDeps;
  readonly #notice: (line: string) => void;
  readonly #closing = new AbortController();
  readonly #logins: DiscoveryContext['logins'] = new Map();
  readonly #followed = new Map<string, Promise<void>>();
  /**
   * The queue of the file and of each source: listings are made and applied one after the other, so that an old one never follows
   * a newer one. The other namespaces of a cluster share one, since callers name any number of them.
   */
  readonly #listings = new Map<string, SerialQueue>();
  #runs = 0;

  constructor(deps: SyncDeps) {
    this.#deps = deps;
    this.#notice = droppingErrors(deps.onNotice);
  }

  /**
   * Reads the registry file again and lists every source once. A source without an answer is a warning; its instances remain.
   * Throws QUEUE_FULL while too many are under way.
   */
  async run(options?: SyncOptions): Promise<SyncOutcome> {
    if (this.#runs >= MAX_RUNS) throw tooMany('syncs under way', { most: MAX_RUNS, isShare: false }, 5);
    this.#runs += 1;
    try {
      return await this.#syncAll(options, this.#deps.registryFile);
    } finally {
      this.#runs -= 1;
    }
  }

  /**
   * Syncs with every source now, and after each change of one until `close`; not with the registry file, which the start has
   * read. Resolves with the outcome of the first sync.
   */
  async follow(): Promise<SyncOutcome> {
    const outcome = await this.#syncAll();
    await this.#followAll();
    void this.#findSources();
    return outcome;
  }

  async close(): Promise<void> {
    this.#closing.abort(shuttingDown());
    await Promise.all(this.#followed.values());
  }

  /** The namespace that is followed, and listed where a caller names none. */
  get #ownNamespace(): string {
    return this.#deps.namespace ?? DEFAULT_NAMESPACE;
  }

  async #sources(namespace = this.#ownNamespace): Promise<{ sources: Source[]; warnings: string[] }> {
    const { definitions, env } = this.#deps;
    if (env === undefined) return { sources: [], warnings: [] };
    const hintsOf = (template: string) => definitions.get(template);
    const context = { env, namespace, hintsOf, logins: this.#logins, signal: this.#closing.signal };
    const sources = new Map<string, Source>();
    const warnings: string[] = [];
    for (const [name, sourcesOf] of Object.entries(DISCOVERY_PROVIDERS)) {
      try {
        for (const source of await sourcesOf(context)) sources.set(source.origin, source);
      } catch (thrown) {
        warnings.push(`${name}: ${messageOf(thrown)}`);
      }
    }
    return { sources: [...sources.values()], warnings };
  }

  async #syncAll({ namespace, ...rules }: SyncOptions = {}, file?: string): Promise<SyncOutcome> {
    const reports: (SyncReport | ImportReport)[] = [];
    const reached: string[] = [];
    const warnings: string[] = [];
    const attempt = async (address: string, work: () => Promise<SyncReport>): Promise<void> => {
      try {
        reports.push(await work());
        reached.push(address);
      } catch (thrown) {
        if (thrown instanceof SourceError) warnings.push(thrown.message);
        else if (thrown instanceof RegistryFileError)
          warnings.push(`${thrown.message}; its instances are left unchanged`);
        else throw thrown;
      }
    };
    if (file !== undefined) await attempt(file, () => this.#syncFile(file, rules, warnings));
    const found = await this.#sources(namespace);
    warnings.push(...found.warnings);
    await Promise.all(
      found.sources.map((source) => attempt(source.address, () => this.#sync(source, rules))),
    );
    if (file === undefined && reached.length + warnings.length === 0) warnings.push(NOTHING_FOUND);
    const all = <K extends keyof SyncReport>(field: K) => reports.flatMap((report) => [...report[field]]);
    return {
      added: all('added'),
      changed: all('changed'),
      removed: all('removed'),
      unchanged: all('unchanged'),
      skipped: all('skipped'),
      settings: reports.flatMap((report) => ('settings' in report ? report.settings : [])),
      reached: reached.toSorted(),
      warnings,
    };
  }

  #syncFile(path: string, rules: SyncOptions, warnings: string[]): Promise<ImportReport> {
    return this.#inOrder(path, async () => {
      const { memoryBytes, registry, clock } = this.#deps;
      const { signal } = this.#closing;
      const read = () => readRegistryFile(path, { memoryBytes, signal });
      const contents = await readAtRest(path, read, clock, signal);
      const report = await importContents(registry, contents, rules);
      // The lines about the document may name templates that the caller may not see.
      const isLimited = rules.mayUse !== undefined && contents.problems.length > 0;
      const lines = isLimited ? [SOME_UNUSABLE] : contents.problems;
      for (const line of lines) warnings.push(`registry file: ${line}`);
      return report;
    });
  }

  #sync(source: Source, rules?: SyncOptions): Promise<SyncReport> {
    const [server = '', namespace] = source.origin.split('/');
    const place = namespace === this.#ownNamespace ? source.origin : server;
    return this.#inOrder(place, async () => syncListing(this.#deps.registry, await source.list(), rules));
  }

  #inOrder<T>(place: string, work: () => Promise<T>): Promise<T> {
    const listings = this.#listings.get(place) ?? new SerialQueue();
    this.#listings.set(place, listings);
    return listings.take(work);
  }

  async #followAll(): Promise<void> {
    for (const source of (await this.#sources()).sources) {
      if (this.#closing.signal.aborted || this.#followed.has(source.origin)) continue;
      this.#followed.set(source.origin, this.#followOne(source));
    }
  }

  async #findSources(): Promise<void> {
    while (await this.#waited(FIND_SOURCES_MS)) await this.#followAll();
  }

  /** Every change causes a listing; an ended container or pod is removed at once. */
  async #followOne(first: Source): Promise<void> {
    const { signal } = this.#closing;
    let source = first;
    const changes$ = new Subject<void>();
    const listings = repeatUntilDone(changes$, {
      clock: this.#deps.clock,
      work: () => this.#sync(source),
      gapMs: 0,
      onFailure: (thrown) => signal.aborted || this.#notice(`sync: ${messageOf(thrown)}`),
    });
    const takeChange = (ended?: string): void => {
      if (ended !== undefined) this.#withdraw(source.origin, ended);
      changes$.next();
    };
    const { now } = this.#deps.clock;
    let waitMs = 0;
    let isLost = false;
    const opened = () => {
      if (isLost) this.#notice(`sync: ${source.address} is available again`);
      isLost = false;
      openedAtMs = now();
      changes$.next();
    };
    let openedAtMs: number | undefined;
    for (;;) {
      openedAtMs = undefined;
      try {
        await source.watch(takeChange, opened);
      } catch (thrown) {
        if (!isLost && !signal.aborted)
          this.#notice(`sync: ${messageOf(thrown)}; its instances are left unchanged`);
        isLost = true;
      }
      // A balancer may cut each watch after some seconds, and no change is seen during the wait.
      const longEnoughMs = Math.min(waitMs, FOLLOWED_MS);
      const wasFollowed = openedAtMs !== undefined && now() - openedAtMs >= longEnoughMs;
      waitMs = waitMs === 0 || wasFollowed ? FIRST_WAIT_MS : Math.min(waitMs * 2, MAX_WAIT_MS);
      if (!(await this.#waited(waitMs))) break;
      if (isLost) source = await this.#asItIsNow(source);
    }
    listings.unsubscribe();
  }

  /** The source by the present configuration, whose certificates and token may be new. */
  async #asItIsNow(source: Source): Promise<Source> {
    const { sources } = await this.#sources();
    return sources.find(({ origin }) => origin === source.origin) ?? source;
  }

  /** False when `close` ended the wait. */
  #waited(ms: number): Promise<boolean> {
    return sleep(this.#deps.clock.background, ms, this.#closing.signal).then(
      () => true,
      () => false,
    );
  }

  #withdraw(origin: string, ended: string): void {
    const { registry } = this.#deps;
    for (const definition of registry.active.instanceDefinitions())
      if (definition.container?.id === ended && cameFrom(origin, definition))
        registry.instances.withdraw(definition.template, [definition.id], 'sync').catch(() => {
          // The listing that follows removes it, or reports the error.
        });
  }
}
