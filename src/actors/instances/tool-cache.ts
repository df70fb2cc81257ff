// The tools that one open transport has listed, to answer "no such tool" and "safe to repeat" without asking the
// backend.

import { firstValueFrom, from, race } from 'rxjs';
import { isJsonObject, ownField } from '../../domain/json/json.ts';
import { isRepeatableBy, isRepeatableTool, type Tool } from '../../domain/mcp/mcp.ts';
import { declaredBy } from '../../domain/mcp/param-headers.ts';
import { keptBytes } from '../../domain/memory/held-bytes.ts';
import type { Clock } from '../../domain/time/clock.ts';
import { timer$ } from '../../domain/time/clock-streams.ts';
import type { ToolHints } from '../../domain/views/view.ts';
import { MAX_QUEUED_PER_INSTANCE } from './call-counter.ts';
import type { ToolDigests, ToolTrust } from './tool-trust.ts';

/**
 * Longest wait of a call while the tools are listed again, because its tool is not in the list. After it: 404
 * TOOL_NOT_FOUND.
 */
const TOOL_LOOKUP_MS = 5_000;
/** Shortest age of a list of tools that is requested again because a called tool is not in it. */
const TOOL_LIST_AGE_MS = 1_000;
/** Listings in a row when the tools change while they are listed. */
const TOOL_LIST_ROUNDS = 3;

/** The most names that are kept of an instance that is down. */
const MAX_NAMES = 1_000;

/** What a gateway says about the tools of one instance. */
export interface ToolRules {
  /** The trust in their definitions; undefined while every definition is trusted. */
  readonly trust: () => ToolTrust | undefined;
  /** The annotations that the template sets, by tool. */
  readonly hints: () => Readonly<Record<string, ToolHints>>;
  /** Counts the memory of the list: so many bytes more, or fewer. False: there is no room, and nothing was counted. */
  readonly count: (bytes: number) => boolean;
}

/** The tools that one open transport has listed. */
export class ToolCache {
  readonly #load: () => Promise<readonly Tool[]>;
  readonly #clock: Clock;
  #tools: ReadonlyMap<string, Tool> | undefined;
  #loading: Promise<void> | undefined;
  #lookup: Promise<void> | undefined;
  #waiting = 0;
  #loadedAtMs = Number.NEGATIVE_INFINITY;
  /** The time of the last listing that began within a second of the one before. */
  #earlyAtMs = Number.NEGATIVE_INFINITY;
  #isStale = false;
  /** True when the listing under way may have read definitions from before a change that was seen. */
  #isDistrusted = false;
  readonly #rules: ToolRules;
  /** The digests of the present list, by tool name; undefined if every definition was trusted when the list was read. */
  #digests: ReadonlyMap<string, ToolDigests> | undefined;
  /** The counted memory of the present list, in bytes. */
  #bytes = 0;
  #isForgotten = false;

  /** `load` lists all tools of the instance. */
  constructor(load: () => Promise<readonly Tool[]>, clock: Clock, rules: ToolRules) {
    this.#load = load;
    this.#clock = clock;
    this.#rules = rules;
  }

  /** Forgets the list for good, because the transport has ended. */
  forget(): void {
    this.#isForgotten = true;
    this.#drop();
  }

  /**
   * Whether the instance lists the tool; `unknown` while there is no list. `no` also for a tool whose
   * definition is not trusted, for the template or for `view`, or not known to be trusted.
   */
  lists(tool: string, view?: string): 'yes' | 'no' | 'unknown' {
    const tools = this.#present;
    if (!this.#isTrusted(tool, view)) return 'no';
    if (tools === undefined) return 'unknown';
    return tools.has(tool) ? 'yes' : 'no';
  }

  /** The names in the present list, to explain an unknown name; undefined without a list, and for a very large one. */
  get names(): readonly string[] | undefined {
    if (this.#tools === undefined || this.#tools.size > MAX_NAMES) return undefined;
    return [...this.#tools.keys()].filter((tool) => this.#isTrusted(tool));
  }

  find(tool: string): Tool | undefined {
    const found = this.#present?.get(tool);
    return found === undefined || !this.#isTrusted(tool) ? undefined : found;
  }

  listsOnly(names: readonly string[]): boolean {
    const tools = this.#present;
    return tools?.size === names.length && names.every((name) => tools.has(name));
  }

  /**
   * True when the annotations of the tool, or those that the template sets, say that calling it twice does no
   * harm.
   */
  isRepeatable(tool: string): boolean {
    const hints = this.#rules.hints();
    const found = this.find(tool);
    const own = ownField(hints, tool);
    return (own && isRepeatableBy(own, found?.annotations)) ?? isRepeatableTool(found);
  }

  #isTrusted(tool: string, view?: string): boolean {
    const trust = this.#rules.trust();
    if (trust === undefined || !trust.isRequiredFor(view)) return true;
    if (this.#digests === undefined) this.#isStale = true;
    const digests = this.#digests?.get(tool);
    return digests !== undefined && trust.isApproved(tool, digests, view);
  }

  /** True when the present list was read before its template, or a view of it, was pinned. */
  get #lacksDigests(): boolean {
    return this.#digests === undefined && this.#rules.trust() !== undefined;
  }

  /** The present list. The first use of an invalidated list starts the delayed listing. */
  get #present(): ReadonlyMap<string, Tool> | undefined {
    if (this.#isStale && this.mayRefresh) void this.refresh();
    return this.#tools;
  }

  /**
   * True when another listing may find a missing tool: the list is older than a second, or its definitions are not
   * known.
   */
  get mayRefresh(): boolean {
    if (this.#loading !== undefined || this.#clock.now() - this.#loadedAtMs >= TOOL_LIST_AGE_MS) return true;
    return this.#lacksDigests;
  }

  /** Lists the tools again. Concurrent callers share one listing; a failed one keeps the present list. Never rejects. */
  refresh(): Promise<void> {
    this.#loading ??= this.#reload();
    return this.#loading;
  }

  /**
   * Handles a list that was read outside this cache, and has definitions that wait for approval. Unless the present
   * list has the same definitions, none of them is trusted until the tools are listed again.
   */
  async distrust(listed: ReadonlyMap<string, ToolDigests>): Promise<void> {
    if ([...listed].every(([name, { own }]) => this.#digests?.get(name)?.own === own)) return;
    this.#digests = new Map();
    this.#isStale = true;
    this.#isDistrusted = true; // a listing that is under way may have read the earlier definitions
    await this.refresh();
  }

  /**
   * Refreshes the list for a waiting call, for at most TOOL_LOOKUP_MS. Undefined when MAX_QUEUED_PER_INSTANCE
   * calls wait already.
   */
  lookUp(): Promise<void> | undefined {
    if (this.#waiting >= MAX_QUEUED_PER_INSTANCE) return undefined;
    this.#waiting += 1;
    this.#lookup ??= firstValueFrom(race(from(this.refresh()), timer$(this.#clock, TOOL_LOOKUP_MS))).then(
      () => {
        this.#lookup = undefined;
        this.#waiting = 0;
      },
    );
    return this.#lookup;
  }

  /**
   * Drops the list, because the backend has announced a change. The next listing begins at once, also for the second
   * notice of one change, which many servers send. Further ones wait for the first request after a second: a backend
   * that sends a notice after every listing would otherwise cause an endless loop.
   */
  async invalidate(): Promise<void> {
    this.#isStale = true;
    this.#drop();
    if (!this.mayRefresh) {
      const now = this.#clock.now();
      if (now - this.#earlyAtMs < TOOL_LIST_AGE_MS) return;
      this.#earlyAtMs = now;
    }
    await this.refresh();
  }

  /**
   * Lists the tools until no change is announced meanwhile, in TOOL_LIST_ROUNDS at most. The last list is kept all the same: a
   * server may announce a change with each list. It stays stale.
   */
  async #reload(): Promise<void> {
    for (let round = 1; round <= TOOL_LIST_ROUNDS; round += 1) {
      this.#isStale = false;
      this.#isDistrusted = false;
      const listed = await this.#listed().catch(() => undefined); // a call that needs the tool meets the failure, too
      const isCurrent = !this.#isStale || (round === TOOL_LIST_ROUNDS && !this.#isDistrusted);
      if (listed !== undefined && isCurrent) {
        const { tools, bytes, digests } = listed;
        this.#keep(tools, bytes);
        this.#digests = digests && new Map([...digests].map(([{ name }, own]) => [name, own]));
      } else if (this.#lacksDigests) this.#digests = new Map(); // the next attempt waits its second
      this.#loadedAtMs = this.#clock.now();
      if (!this.#isStale) break;
    }
    // In the same turn as the check of `#isStale`: a later change starts a new listing.
    this.#loading = undefined;
  }

  /**
   * Lists the tools, and records definitions that wait for approval. `bytes`: the memory of the tools. `digests`: undefined while
   * every definition is trusted.
   */
  async #listed() {
    const listed = await this.#load();
    const trust = this.#rules.trust();
    const digests = await trust?.digestsOf(listed);
    if (digests !== undefined) await trust?.listed(digests, 'all');
    const tools = listed.map(keptOf);
    return { tools, bytes: keptBytes(tools), digests };
  }

  /** Keeps the list if there is room for it; otherwise its tools are unknown. */
  #keep(tools: readonly Tool[], bytes: number): void {
    this.#drop();
    if (this.#isForgotten || !this.#rules.count(bytes)) return;
    this.#bytes = bytes;
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  #drop(): void {
    this.#rules.count(-this.#bytes);
    this.#bytes = 0;
    this.#tools = undefined;
  }
}

/** The tool with only the fields that the gateway itself needs, since a list may take many megabytes. */
function keptOf({ name, annotations: written, inputSchema }: Tool): Tool {
  const annotations = isJsonObject(written) ? written : {};
  const safe = {
    ...(annotations.readOnlyHint === true && { readOnlyHint: true }),
    ...(annotations.idempotentHint === true && { idempotentHint: true }),
  };
  const { declarations } = declaredBy(inputSchema);
  return {
    name,
    ...(isRepeatableTool({ annotations }) ? { annotations: safe } : {}),
    ...(declarations.length > 0 ? { inputSchema } : {}),
  };
}
