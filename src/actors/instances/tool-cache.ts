// The tools of one instance, as it listed them. Decides "no such tool" and "safe to repeat" without asking the backend.
// One per session: it dies with it. Filled behind the handshake, never on the way of a call that it can answer.

import { firstValueFrom, from, race, timer } from 'rxjs';
import { LIMITS } from '../../domain/limits.ts';
import { isRepeatableTool, type Tool } from '../../domain/mcp.ts';
import { asksOtherwise } from '../../domain/param-headers.ts';

/** `unknown`: the list is not here (yet), so the call must be sent to find out. */
export type ToolKnowledge = 'yes' | 'no' | 'unknown';

export class ToolCache {
  readonly #load: () => Promise<readonly Tool[]>;
  readonly #now: () => number;
  readonly #changed: () => void;
  #tools: ReadonlyMap<string, Tool> | undefined;
  #loading: Promise<void> | undefined;
  #lookup: Promise<void> | undefined;
  #waiting = 0;
  #loadedAtMs = Number.NEGATIVE_INFINITY;
  #stale = false;

  /**
   * `load` lists all tools of the instance; `now` is a monotonic clock in ms. `changed` gets a list by which correct calls
   * become wrong, because a tool asks for other headers, without a notice of the backend that the list changed.
   */
  constructor(load: () => Promise<readonly Tool[]>, now: () => number, changed: () => void = () => {}) {
    this.#load = load;
    this.#now = now;
    this.#changed = changed;
  }

  /** Answers at once. The first question about a list that is void starts the listing that was put off. */
  knows(tool: string): ToolKnowledge {
    if (this.#stale && this.mayRefresh) void this.refresh();
    if (this.#tools === undefined) return 'unknown';
    return this.#tools.has(tool) ? 'yes' : 'no';
  }

  /** The tool as it was listed last; undefined when it was not. */
  find(tool: string): Tool | undefined {
    return this.#tools?.get(tool);
  }

  /** True when it lists the tools of exactly these names. */
  listsOnly(names: readonly string[]): boolean {
    const tools = this.#tools;
    return tools?.size === names.length && names.every((name) => tools.has(name));
  }

  /** True when the tool's annotations say that calling it twice does no harm. */
  isRepeatable(tool: string): boolean {
    return isRepeatableTool(this.#tools?.get(tool));
  }

  /** True when a miss may be settled by looking again: the list is older than a second. */
  get mayRefresh(): boolean {
    return this.#loading !== undefined || this.#now() - this.#loadedAtMs >= LIMITS.toolListAgeMs;
  }

  /** Lists again; concurrent callers share one listing. A failed listing leaves what was known. Never rejects. */
  refresh(): Promise<void> {
    this.#loading ??= this.#reload();
    return this.#loading;
  }

  /**
   * `refresh` for a call: resolves when the list is here, at the latest after LIMITS.toolLookupMs. Undefined when
   * LIMITS.queuedPerInstance calls wait already.
   */
  lookUp(): Promise<void> | undefined {
    if (this.#waiting >= LIMITS.queuedPerInstance) return undefined;
    this.#waiting += 1;
    this.#lookup ??= this.#boundedRefresh();
    return this.#lookup;
  }

  /**
   * The backend said that its list changed: the cached list is void until it is listed again. That is at once, or at the
   * first request after a second: a backend that says so after every listing would keep both sides busy for ever.
   */
  async invalidate(): Promise<void> {
    this.#stale = true;
    this.#tools = undefined;
    if (this.mayRefresh) await this.refresh();
  }

  async #boundedRefresh(): Promise<void> {
    await firstValueFrom(race(from(this.refresh()), timer(LIMITS.toolLookupMs)));
    this.#lookup = undefined;
    this.#waiting = 0;
  }

  async #reload(): Promise<void> {
    for (let round = 0; round < LIMITS.toolListRounds; round += 1) {
      this.#stale = false;
      const tools = await this.#list();
      if (tools !== undefined && !this.#stale) this.#replace(tools);
      this.#loadedAtMs = this.#now();
      if (!this.#stale) break;
    }
    // In one step with the look at `#stale`: a change that is heard from here on starts a listing of its own.
    this.#loading = undefined;
  }

  #replace(tools: readonly Tool[]): void {
    const before = this.#tools; // none when the backend said that it changed
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    const hasChanged = ({ name, inputSchema }: Tool): boolean => {
      const known = before?.get(name);
      return known !== undefined && asksOtherwise(known.inputSchema, inputSchema);
    };
    if (before !== undefined && tools.some(hasChanged)) this.#changed();
  }

  /** Undefined when it failed: the call that needs the tool will meet the same failure and tell its caller. */
  async #list(): Promise<readonly Tool[] | undefined> {
    try {
      return await this.#load();
    } catch {
      return undefined; // here nothing is lost
    }
  }
}
