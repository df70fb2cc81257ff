// The approved definitions of the tools of pinned templates and views, and the definitions that wait for approval. A template or
// view without any approval was just pinned: its first list is approved. Source: ADR 238.

import { Subject } from 'rxjs';
import type { ToolCache } from '../../actors/instances/tool-cache.ts';
import type { ToolTrust, TrustOf } from '../../actors/instances/tool-trust.ts';
import type { StoredTemplate } from '../../balancing/stored-template.ts';
import { groupsToMatch } from '../../domain/accounts/globs.ts';
import { toolNotFound } from '../../domain/errors/backend-errors.ts';
import { restOfChange } from '../../domain/errors/gateway-errors.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import type { WithheldItem } from '../../domain/mcp/mcp.ts';
import { eachInGroups, inGroups } from '../../domain/time/task-groups.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { type Approval, itemKey, type NewApproval, splitItemKey } from '../../domain/views/approval.ts';
import type { ToolHints, ViewDefinition } from '../../domain/views/view.ts';
import { type ApprovalStore, MAX_ROWS } from '../../persistence/store.ts';
import { type ChosenItem, CompiledView } from '../../protocol/aggregate/views/compiled-view.ts';
import type { Waiting } from '../../protocol/aggregate/views/view-problems.ts';
import type { WithheldTool } from '../../transports/open-options.ts';
import type { RegistryChanges } from '../registry-changes.ts';
import {
  digestOf,
  type ListedTool,
  PinnedScope,
  type PinnedScopeDeps,
  type ToolState,
} from './pinned-scope.ts';
import { type PinnedView, TemplateTrust } from './template-trust.ts';

interface ToolApprovalsDeps extends Pick<PinnedScopeDeps, 'emit' | 'clock'> {
  readonly store: ApprovalStore;
  readonly scheduler: TaskScheduler;
  /** The annotations of tools that the template sets. */
  readonly hintsOf: (template: string) => Readonly<Record<string, ToolHints>>;
  /** Called when the approvals of a template have changed. */
  readonly onChanged: (template: string) => void;
  /** Those of the registry, of whose changes the approvals are. */
  readonly changes: Pick<RegistryChanges, 'run' | 'advance'>;
}

/** All pinned templates and views of a gateway, each with its PinnedScope. */
export class ToolApprovals {
  /** Emits the id of a view whose approved or waiting tools have changed. Hot; never completes. */
  readonly viewChanged$ = new Subject<string>();
  readonly #deps: ToolApprovalsDeps;
  readonly #templates = new Map<string, PinnedScope>();
  readonly #views = new Map<string, PinnedView>();
  readonly #shown = new ShownDigests();
  /** The pinned views of each template, by their ids. */
  readonly #viewsOf = new Map<string, Map<string, PinnedView>>();
  /** The trusts that were asked for, by template, until the template, or a view of it, is pinned or released. */
  readonly #trusts = new Map<string, ToolTrust>();
  /** The approvals by scope, as they were last read from the store; undefined before. */
  #stored: ReadonlyMap<string, readonly Approval[]> | undefined;
  /** The first lists of templates that are being read and approved. */
  readonly #firstLists = new Map<string, Promise<void>>();
  /** Those that were saved here since the read that is under way began: its answer may be older. */
  #savedMeanwhile: NewApproval[] | undefined;

  constructor(deps: ToolApprovalsDeps) {
    this.#deps = deps;
  }

  readonly trustOf: TrustOf = (template) => this.#trusts.get(template) ?? this.#newTrust(template);

  /** True for a pinned template or view. */
  isPinned(scope: string): boolean {
    return this.#of(scope) !== undefined;
  }

  /** Pins or releases a template. Until `read`, or `settle`, no definition of a newly pinned one is trusted. */
  setPinned(template: string, isPinned: boolean): void {
    if (isPinned === this.#templates.has(template)) return;
    if (isPinned) this.#templates.set(template, this.#newScope(template, 'template'));
    else this.#templates.delete(template);
    this.#trusts.delete(template);
    this.#deps.onChanged(template);
  }

  /** Pins or releases a view, as `setPinned` does a template. `definition`: undefined for a deleted view. */
  setView(id: string, definition: ViewDefinition | undefined): void {
    const before = this.#views.get(id);
    if (definition?.approve !== 'pinned') {
      this.#setPinnedView(id, undefined);
      return;
    }
    const scope = before?.scope ?? this.#newScope(id, 'view');
    this.#setPinnedView(id, { scope, choices: new CompiledView(definition) });
    void this.#takenOf(id, scope.waiting(), (waiting) => {
      if (this.#views.get(id)?.scope === scope) scope.dropWaiting(waiting.tool);
    });
  }

  #setPinnedView(id: string, after: PinnedView | undefined): void {
    for (const template of this.#views.get(id)?.choices.templates ?? []) {
      this.#trusts.delete(template);
      const views = this.#viewsOf.get(template);
      views?.delete(id);
      if (views?.size === 0) this.#viewsOf.delete(template);
    }
    this.#views.delete(id);
    if (after === undefined) return;
    this.#views.set(id, after);
    for (const template of after.choices.templates) {
      this.#trusts.delete(template);
      const views = this.#viewsOf.get(template) ?? new Map<string, PinnedView>();
      this.#viewsOf.set(template, views.set(id, after));
    }
  }

  /** Reads the approvals from the store if something is pinned, or will be by these. Throws DATABASE_UNAVAILABLE. */
  async read(templates: readonly StoredTemplate[], views: readonly ViewDefinition[]): Promise<void> {
    const isAnyPinned = this.#templates.size > 0 || this.#views.size > 0;
    const willBe =
      templates.some(({ loadBalancer }) => loadBalancer.approve === 'pinned') ||
      views.some(({ approve }) => approve === 'pinned');
    if (!isAnyPinned && !willBe) return;
    const savedMeanwhile: NewApproval[] = [];
    this.#savedMeanwhile = savedMeanwhile;
    try {
      this.#stored = Map.groupBy(await this.#deps.store.list(), ({ scope }) => scope);
    } finally {
      this.#savedMeanwhile = undefined;
    }
    const saved = Map.groupBy(savedMeanwhile, ({ scope }) => scope);
    for (const scope of [
      ...this.#templates.values(),
      ...[...this.#views.values()].map((view) => view.scope),
    ]) {
      const isOther = scope.replace(this.#stored.get(scope.id) ?? []);
      scope.add(saved.get(scope.id) ?? []);
      if (isOther) this.#changed(scope.id);
    }
  }

  /**
   * Completes a change of a template that may have been pinned or released here: drops its approvals, or begins to approve
   * the tools that its instances list now, or, if none does, the first list of one. A part of that change. Throws
   * DATABASE_UNAVAILABLE.
   */
  async settle(
    template: string,
    wasPinned: boolean,
    instances: readonly { readonly tools: Pick<ToolCache, 'lookUp'> | undefined }[],
  ): Promise<void> {
    if (this.#templates.has(template) === wasPinned) return;
    await this.forget(template);
    const list = () => Promise.all(instances.map(({ tools }) => tools?.lookUp()));
    const first = this.approveFirst(template, list).finally(() => {
      if (this.#firstLists.get(template) === first) this.#firstLists.delete(template);
    });
    first.catch(() => undefined); // `settled` rejects with it
    this.#firstLists.set(template, first);
  }

  /**
   * After a change with `settle`, and not a part of it, because servers are waited for: resolves when the tools that were listed
   * are approved. Throws DATABASE_UNAVAILABLE, when the change itself is stored.
   */
  async settled(template: string): Promise<void> {
    const first = this.#firstLists.get(template);
    if (first !== undefined) await restOfChange(first);
  }

  /**
   * Forgets the approvals of a template or view that was pinned or released here, also those of an earlier one with this name. A
   * part of that change. Throws DATABASE_UNAVAILABLE.
   */
  async forget(id: string): Promise<void> {
    const others = [...(this.#stored ?? [])].filter(([scope]) => scope !== id);
    this.#stored = this.#stored && new Map(others);
    this.#deps.changes.advance(await this.#deps.store.deleteOf(id));
    this.#of(id)?.replace([]);
    if (this.#views.has(id)) this.viewChanged$.next(id);
  }

  /** True for a pinned view of which nothing is approved yet, so that its first list will be. */
  awaitsFirst(view: string): boolean {
    return this.#views.get(view)?.scope.isFirst === true;
  }

  /** Approves the tools that `list` lists if nothing is approved yet. Throws DATABASE_UNAVAILABLE. */
  async approveFirst(id: string, list: () => Promise<unknown>): Promise<void> {
    const scope = this.#of(id);
    if (scope?.isFirst !== true) return;
    await scope.gather(list);
    await this.#saveFirst(scope);
    if (this.#views.has(id)) this.viewChanged$.next(id);
  }

  /** Approves what was listed first, as a change of its own. */
  #saveFirst(scope: PinnedScope): Promise<void> {
    return this.#deps.changes.run(async () => {
      if (this.#of(scope.id) === scope && scope.isFirst) await this.#save(scope);
    });
  }

  /** The tools of a pinned template or view, sorted by name. Throws DATABASE_UNAVAILABLE. */
  async states(id: string): Promise<ToolState[]> {
    const states = this.#of(id)?.states(await this.#deps.store.definitionsOf(id)) ?? [];
    return this.#takenOf(id, states);
  }

  /** The definitions of a pinned template or view that wait, those of other nodes included that this one has learned. */
  waitingDefinitions(id: string): readonly ListedTool[] {
    return this.#of(id)?.waitingDefinitions() ?? [];
  }

  /** Keeps the definitions of a pinned template or view that wait at another node. */
  async learn(id: string, definitions: readonly ListedTool[]): Promise<void> {
    await this.#of(id)?.learn(definitions);
  }

  /** The tools of a pinned template or view that wait. */
  withheldFrom(id: string): readonly WithheldTool[] {
    return this.#of(id)?.withheld() ?? [];
  }

  readonly withheldOf = (template: string): readonly WithheldItem[] =>
    (this.#templates.get(template)?.withheld() ?? []).map(({ tool: name, reason }) => ({
      list: 'tools',
      name,
      reason,
    }));

  /** The items in a list of the view that are not approved; they are noted, in several turns. */
  readonly waitingIn = async (
    view: string,
    chosen: readonly ChosenItem[],
  ): Promise<ReadonlyMap<ChosenItem, Waiting>> => {
    const scope = this.#views.get(view)?.scope;
    if (scope === undefined) return new Map();
    const tools: ListedTool[] = [];
    const waiting = new Map<ChosenItem, Waiting>();
    const look = (item: ChosenItem): void => {
      const listed = this.#shown.listedIn(item);
      tools.push(listed);
      if (!scope.has(listed.tool, listed.digest)) waiting.set(item, scope.waitingOf(listed.tool));
    };
    await eachInGroups(chosen, look, this.#deps.scheduler);
    await scope.listed(tools, 'all');
    return waiting;
  };

  /**
   * Approves the waiting definitions of these tools, or of all; resolves with the tools that waited. `digests`: only these
   * definitions. Throws TOOL_NOT_FOUND for a tool that is neither listed nor approved; DATABASE_UNAVAILABLE.
   */
  async approve(
    id: string,
    tools?: readonly string[],
    digests?: readonly string[],
  ): Promise<readonly string[]> {
    return this.#deps.changes.run(async () => {
      const scope = this.#of(id);
      if (scope === undefined) return [];
      const unknown = tools?.find((tool) => !scope.knows(tool));
      if (unknown !== undefined) throw toolNotFound(unknown, id);
      const approvals = await this.#takenOf(id, scope.waiting(tools, digests && new Set(digests)));
      await this.#save(scope, approvals);
      if (this.#views.has(id)) this.viewChanged$.next(id);
      return approvals.map(({ tool }) => tool);
    });
  }

  /** The items that the view takes now, all of a template, in several turns. `other` gets each other item. */
  async #takenOf<T extends { readonly tool: string }>(
    id: string,
    items: readonly T[],
    other: (item: T) => void = () => {},
  ): Promise<T[]> {
    const taken: T[] = [];
    await this.#deps.scheduler.each(
      groupsToMatch(items, ({ tool }) => tool),
      (group) => {
        const choices = this.#views.get(id)?.choices;
        for (const item of group) {
          if (choices === undefined || takes(choices, item.tool)) taken.push(item);
          else other(item);
        }
      },
    );
    return taken;
  }

  #of(id: string): PinnedScope | undefined {
    return this.#templates.get(id) ?? this.#views.get(id)?.scope;
  }

  #newScope(id: string, kind: 'template' | 'view'): PinnedScope {
    const scope = new PinnedScope(id, kind, {
      ...this.#deps,
      // The next list tries again when the store fails.
      onFirst: (first) => void this.#saveFirst(first).catch(() => undefined),
    });
    if (this.#stored !== undefined) scope.replace(this.#stored.get(id) ?? []);
    return scope;
  }

  #changed(id: string): void {
    if (this.#views.has(id)) this.viewChanged$.next(id);
    else this.#deps.onChanged(id);
  }

  /** The result is undefined while neither the template nor a view of it is pinned. */
  #newTrust(template: string): ToolTrust | undefined {
    const own = this.#templates.get(template);
    const views = [...(this.#viewsOf.get(template)?.values() ?? [])];
    if (own === undefined && views.length === 0) return undefined;
    const trust = new TemplateTrust({
      template,
      own,
      views,
      // Lists that are stored still have the definition that was approved.
      hints: () => this.#deps.hintsOf(template),
      onWaiting: () => this.#deps.onChanged(template),
      scheduler: this.#deps.scheduler,
    });
    this.#trusts.set(template, trust);
    return trust;
  }

  async #save(scope: PinnedScope, approvals: readonly NewApproval[] = scope.waiting()): Promise<void> {
    const { store, emit, scheduler, changes } = this.#deps;
    let isBegun = false;
    for (const rows of inGroups(approvals, MAX_ROWS)) {
      await scheduler.turn(rows.length);
      const saving = store.save(rows);
      changes.advance(await (isBegun ? restOfChange(saving) : saving));
      isBegun = true;
    }
    scope.add(approvals); // all in one turn: a part would make the other tools new ones
    this.#savedMeanwhile?.push(...approvals);
    await eachInGroups(
      approvals,
      ({ tool }) => emit({ type: 'tool.approved', ...scope.eventOf(tool) }),
      scheduler,
    );
    if (approvals.length > 0 && this.#templates.has(scope.id)) this.#deps.onChanged(scope.id);
  }
}

function takes(choices: CompiledView, key: string): boolean {
  const { template, tool } = splitItemKey(key);
  return choices.takes('tools', template, tool);
}

/** The digests of definitions as the lists of aggregates show them. Lists are made of the same items again and again. */
class ShownDigests {
  readonly #known = new WeakMap<JsonObject, string>();

  /** A number that is kept as text counts as every parser reads it. */
  of(item: JsonObject): string {
    const digest = this.#known.get(item) ?? digestOf(JSON.parse(JSON.stringify(item)));
    this.#known.set(item, digest);
    return digest;
  }

  readonly listedIn = ({ template, own, listed }: ChosenItem): ListedTool => ({
    tool: itemKey(template, own),
    digest: this.of(listed),
    definition: listed,
  });
}
