// Decides when deployments are synchronized, and with which sources: once for `gateway sync`, which also reads the registry file
// again, and after each change while the gateway runs with --sync. src/discovery/ queries the sources, registry-sync.ts applies a
// listing. Source: ADRs 59 and 65.

import { setTimeout as delay } from 'node:timers/promises';
import { docker, podman } from '../discovery/containers.ts';
import { kubernetes } from '../discovery/kubernetes.ts';
import {
  type Provider,
  type Source,
  type SourceChange,
  SourceError,
  type TemplateHints,
} from '../discovery/provider.ts';
import type { SyncOptions, SyncOutcome, SyncReport, SyncRules } from '../domain/deployment.ts';
import { messageOf } from '../domain/errors.ts';
import { SerialQueue } from '../domain/serial-queue.ts';
import type { DiscoveryOptions } from '../gateway-types.ts';
import { RegistryFileError, readRegistryFile } from '../persistence/registry-file.ts';
import type { Registry } from '../registry.ts';
import { cameFrom, importContents, syncListing } from '../registry-sync.ts';

/** Without `env` there are no sources. */
export interface SyncDeps extends Partial<DiscoveryOptions> {
  readonly registry: Registry;
  readonly definitions: ReadonlyMap<string, TemplateHints>;
}

/** The providers of deployments, by name. */
const PROVIDERS: Readonly<Record<string, Provider>> = { docker, podman, kubernetes };
const DEFAULT_NAMESPACE = 'mcp-servers';
/** Waits before a lost source is followed again, in ms. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** Wait before a failed listing is repeated, in ms. */
const REPEAT_LISTING_MS = 5_000;
/** Interval of the search for new engines, in ms. */
const FIND_SOURCES_MS = 30_000;
const NOTHING_FOUND = 'no container engine and no Kubernetes cluster is configured or found on this machine';
const SOME_UNUSABLE = 'some entries cannot be used';

interface SyncProgress {
  readonly reports: SyncReport[];
  readonly settings: string[];
  readonly reached: string[];
  readonly warnings: string[];
}

export class Sync {
  readonly #deps: SyncDeps;
  readonly #closing = new AbortController();
  readonly #followed = new Map<string, Promise<void>>();
  /** For each source: listings are made and applied one after the other, so that an old one never follows a newer one. */
  readonly #listings = new Map<string, SerialQueue>();

  constructor(deps: SyncDeps) {
    this.#deps = deps;
  }

  /** Reads the registry file again and lists every source once. A source without an answer is a warning; its instances remain. */
  run({ namespace, ...rules }: SyncOptions = {}): Promise<SyncOutcome> {
    return this.#syncAll(namespace, rules, this.#deps.registryFile);
  }

  /** Syncs with every source now, and after each change of one until `close`; not with the registry file, which the start has
   *  read. Resolves with the outcome of the first sync. */
  async follow(): Promise<SyncOutcome> {
    const outcome = await this.#syncAll();
    await this.#followAll();
    void this.#findSources();
    return outcome;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#followed.values());
  }

  async #sources(
    namespace = this.#deps.namespace ?? DEFAULT_NAMESPACE,
  ): Promise<{ sources: Source[]; warnings: string[] }> {
    const { definitions, env } = this.#deps;
    if (env === undefined) return { sources: [], warnings: [] };
    const hintsOf = (template: string) => definitions.get(template);
    const context = { env, namespace, hintsOf, signal: this.#closing.signal };
    const sources = new Map<string, Source>();
    const warnings: string[] = [];
    for (const [name, sourcesOf] of Object.entries(PROVIDERS)) {
      try {
        for (const source of await sourcesOf(context)) sources.set(source.origin, source);
      } catch (thrown) {
        warnings.push(`${name}: ${messageOf(thrown)}`);
      }
    }
    return { sources: [...sources.values()], warnings };
  }

  async #syncAll(namespace?: string, rules: SyncRules = {}, registryFile?: string): Promise<SyncOutcome> {
    const progress: SyncProgress = { reports: [], settings: [], reached: [], warnings: [] };
    const { reports, reached, warnings } = progress;
    if (registryFile !== undefined) await this.#syncFile(registryFile, rules, progress);
    const found = await this.#sources(namespace);
    warnings.push(...found.warnings);
    await Promise.all(
      found.sources.map(async (source) => {
        try {
          reports.push(await this.#sync(source, rules));
          reached.push(source.address);
        } catch (thrown) {
          if (!(thrown instanceof SourceError)) throw thrown;
          warnings.push(thrown.message);
        }
      }),
    );
    if (registryFile === undefined && reached.length + warnings.length === 0) warnings.push(NOTHING_FOUND);
    return syncOutcomeOf(progress);
  }

  async #syncFile(path: string, rules: SyncRules, progress: SyncProgress): Promise<void> {
    const { reports, settings, reached, warnings } = progress;
    const { registry } = this.#deps;
    try {
      const { contents, done } = await this.#inOrder(path, async () => {
        const contents = await readRegistryFile(path);
        return { contents, done: await importContents(registry, contents, rules) };
      });
      reports.push(done);
      settings.push(...done.settings);
      reached.push(path);
      // The lines about the document may name templates that the caller may not see.
      const isLimited = rules.mayUse !== undefined && contents.problems.length > 0;
      const lines = isLimited ? [SOME_UNUSABLE] : contents.problems;
      warnings.push(...lines.map((line) => `registry file: ${line}`));
    } catch (thrown) {
      if (!(thrown instanceof RegistryFileError)) throw thrown;
      warnings.push(`${thrown.message}; its instances are left unchanged`);
    }
  }

  #sync(source: Source, rules?: SyncRules, onBegin = () => {}): Promise<SyncReport> {
    return this.#inOrder(source.origin, async () => {
      onBegin();
      return syncListing(this.#deps.registry, await source.list(), rules);
    });
  }

  #inOrder<T>(origin: string, work: () => Promise<T>): Promise<T> {
    const listings = this.#listings.get(origin) ?? new SerialQueue();
    this.#listings.set(origin, listings);
    return listings.take(work);
  }

  async #followAll(): Promise<void> {
    for (const source of (await this.#sources()).sources) {
      if (this.#closing.signal.aborted || this.#followed.has(source.origin)) continue;
      this.#followed.set(source.origin, this.#followOne(source));
    }
  }

  async #findSources(): Promise<void> {
    const { signal } = this.#closing;
    while (await waited(FIND_SOURCES_MS, signal)) await this.#followAll();
  }

  async #followOne(source: Source): Promise<void> {
    const { signal } = this.#closing;
    const { onNotice = () => {} } = this.#deps;
    let waitMs = FIRST_WAIT_MS;
    let isLost = false;
    const opened = () => {
      if (isLost) onNotice(`sync: ${source.address} is available again`);
      isLost = false;
      waitMs = FIRST_WAIT_MS;
      takeChange({});
    };
    const takeChange = this.#changesOf(source);
    do {
      try {
        await source.watch(takeChange, opened);
      } catch (thrown) {
        if (signal.aborted) return;
        if (!isLost) onNotice(`sync: ${messageOf(thrown)}; its instances are left unchanged`);
        isLost = true;
      }
      waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
    } while (await waited(waitMs / 2, signal));
  }

  /** An ended deployment is removed at once. Every change requests a listing; a waiting listing serves several changes. */
  #changesOf(source: Source): (change: SourceChange) => void {
    const { registry, onNotice = () => {} } = this.#deps;
    const { signal } = this.#closing;
    let isFailing = false;
    const report = (thrown: unknown) => {
      if (!isFailing && !signal.aborted) onNotice(`sync: ${messageOf(thrown)}`);
      isFailing = true;
    };
    let isWaiting = false;
    const takeChange = ({ ended }: SourceChange): void => {
      if (ended !== undefined) {
        const gone = registry.active
          .definitions()
          .filter((definition) => definition.container?.id === ended && cameFrom(source.origin, definition));
        for (const { template, id } of gone) registry.withdraw(template, id, 'sync').catch(report);
      }
      if (isWaiting) return;
      isWaiting = true;
      const onBegin = () => {
        isWaiting = false;
      };
      this.#sync(source, {}, onBegin).then(
        () => {
          isFailing = false;
        },
        async (thrown) => {
          report(thrown);
          if (await waited(REPEAT_LISTING_MS, signal)) takeChange({});
        },
      );
    };
    return takeChange;
  }
}

function syncOutcomeOf({ reports, settings, reached, warnings }: SyncProgress): SyncOutcome {
  const all = <K extends keyof SyncReport>(field: K) => reports.flatMap((report) => [...report[field]]);
  return {
    ...{ added: all('added'), changed: all('changed'), removed: all('removed') },
    ...{ unchanged: all('unchanged'), skipped: all('skipped') },
    ...{ settings, reached: reached.toSorted(), warnings },
  };
}

/** False when the signal aborted the wait. */
async function waited(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await delay(ms, undefined, { signal, ref: false });
    return true;
  } catch {
    return false; // aborted
  }
}
