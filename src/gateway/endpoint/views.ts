// The views of a gateway: the actions of admins, and the view that serves a name.

import { map, type Observable, Subscription } from 'rxjs';
import type { Dispatcher } from '../../actors/calls/dispatcher.ts';
import { groupsToMatch } from '../../domain/accounts/globs.ts';
import { ANONYMOUS } from '../../domain/accounts/principal.ts';
import {
  type ExchangeOptions,
  type ExchangeRequest,
  ownerIdOf,
  type SourcedEvent,
} from '../../domain/calls/exchange.ts';
import { restOfChange } from '../../domain/errors/gateway-errors.ts';
import { viewNotFound } from '../../domain/errors/registry-errors.ts';
import { countHealth } from '../../domain/instances/instance.ts';
import { definedFields, jsonCopy } from '../../domain/json/json.ts';
import type { Owner } from '../../domain/mcp/client.ts';
import type { ListChange, WithheldItem } from '../../domain/mcp/mcp.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { itemKey, splitItemKey } from '../../domain/views/approval.ts';
import {
  type NameTargets,
  NO_NAMES,
  type StoredView,
  type ViewDefinition,
  type ViewProblem,
} from '../../domain/views/view.ts';
import { checkedView } from '../../domain/views/view-schema.ts';
import type { AggregateBackends } from '../../protocol/aggregate/aggregate-backends.ts';
import { withAggregateInstance } from '../../protocol/aggregate/aggregate-names.ts';
import { CompiledLists } from '../../protocol/aggregate/views/compiled-lists.ts';
import { CompiledView } from '../../protocol/aggregate/views/compiled-view.ts';
import type { ViewCondition } from '../../registry/kinds/view-registry.ts';
import type { ToolApprovals } from '../../registry/pinned/tool-approvals.ts';
import type { ServedViews, ViewPreview, ViewRecord, ViewTool } from '../gateway-types.ts';
import { GATEWAY_PROFILE, ServedView, type ServedViewDeps } from './served-view.ts';

export interface ViewsDeps extends ServedViewDeps {
  readonly dispatcher: Pick<Dispatcher, 'exchange'>;
  readonly approvals: Pick<
    ToolApprovals,
    | 'viewChanged$'
    | 'isPinned'
    | 'awaitsFirst'
    | 'waitingIn'
    | 'approveFirst'
    | 'states'
    | 'withheldFrom'
    | 'approve'
  >;
  /** The tools that the lists of a template leave out. */
  readonly withheldOf: (template: string) => readonly WithheldItem[];
}

/**
 * All views of a gateway, each with its backends. The items of a view depend on its definition and on the
 * lists of its templates; both may change while clients use it. What the members give is said at ServedViews.
 */
export class Views implements ServedViews {
  readonly #deps: ViewsDeps;
  readonly #served = new Map<string, ServedView>();
  readonly #subscriptions = new Subscription();
  readonly #compiledLists = new CompiledLists();
  /** The views that are being stored here, one of them perhaps twice: their first lists are read then. */
  readonly #settling = new Set<Pick<ViewDefinition, 'id'>>();

  constructor(deps: ViewsDeps) {
    this.#deps = deps;
    const { listChanges$, lists } = deps.aggregate;
    this.#subscriptions.add(deps.registry.changed$.subscribe((id) => this.#changed(id)));
    const note = ({ template }: ListChange) => {
      for (const view of this.#served.values()) view.noteChange(template);
    };
    this.#subscriptions.add(listChanges$.subscribe(note));
    this.#subscriptions.add(lists.late$.subscribe(note));
    const approved = deps.approvals.viewChanged$.subscribe((id) => {
      this.#served.get(id)?.approvalsChanged();
      this.#approveFirst(id);
    });
    this.#subscriptions.add(approved);
  }

  /** Follows no changes any more, and stores no names. The sessions and streams of the views end with those of the gateway. */
  close(): void {
    this.#subscriptions.unsubscribe();
    for (const view of this.#served.values()) view.endSaving();
  }

  has(id: string): boolean {
    return !this.#deps.fleet.templates.has(id) && this.#deps.registry.find(id) !== undefined;
  }

  list(): StoredView[] {
    return this.#deps.registry.list();
  }

  find(id: string): StoredView {
    const found = this.#deps.registry.find(id);
    if (found === undefined) throw viewNotFound(id);
    return found;
  }

  /** The result is undefined when there is no view of this name. */
  backends(id: string): AggregateBackends | undefined {
    return this.#of(id)?.backends;
  }

  /** The templates of a view, whether they exist or not; undefined for the name of a template. */
  templatesOf(id: string): readonly string[] | undefined {
    return this.has(id) ? this.#of(id)?.templates : undefined;
  }

  /** True when the view has this tool of the template now. */
  hasTool(id: string, template: string, tool: string): boolean {
    return this.#of(id)?.directory.hasTool(template, tool) ?? false;
  }

  async put(
    written: ViewDefinition,
    condition: ViewCondition = {},
  ): Promise<ViewRecord & { readonly isNew: boolean }> {
    const { registry, approvals } = this.#deps;
    const definition = checkedView(jsonCopy(written)); // an embedding program may change its own
    const { id } = definition;
    const draft = await this.#draft(definition);
    await draft.survey();
    this.#settling.add(definition);
    try {
      const stored = await registry.put(definition, { ...condition, names: draft.names });
      await restOfChange(approvals.approveFirst(id, () => this.problems(id)));
      return { ...stored, problems: await restOfChange(this.problems(id)) };
    } finally {
      this.#settling.delete(definition);
    }
  }

  delete(id: string, condition?: ViewCondition): Promise<void> {
    return this.#deps.registry.delete(id, condition);
  }

  async tools(id: string): Promise<ViewTool[]> {
    const view = this.#of(id);
    if (view === undefined) throw viewNotFound(id);
    const { approvals, withheldOf, aggregate } = this.#deps;
    const names = await view.toolNames();
    const reasons = new Map(approvals.withheldFrom(id).map(({ tool, reason }) => [tool, reason]));
    const states = approvals.isPinned(id)
      ? await approvals.states(id)
      : [...names.keys()].map((tool) => ({ tool, state: 'approved' as const }));
    const known = new Set(states.map(({ tool }) => tool));
    const withheld: { tool: string; state: 'withheld'; reason: string }[] = [];
    const perhaps = view.templates.flatMap((template) =>
      withheldOf(template).flatMap(({ list, name, reason }) => {
        const tool = itemKey(template, name);
        return list !== 'tools' || known.has(tool) ? [] : [{ template, name, tool, reason }];
      }),
    );
    await aggregate.scheduler.each(
      groupsToMatch(perhaps, ({ name }) => name),
      (group) => {
        for (const { template, name, tool, reason } of group)
          if (view.takes(template, name)) withheld.push({ tool, state: 'withheld', reason });
      },
    );
    return [...states, ...withheld].map(({ tool: key, ...others }) => {
      const reason = reasons.get(key);
      const own = splitItemKey(key);
      return {
        name: names.get(key) ?? view.wishOf(own),
        ...own,
        ...(reason !== undefined && { reason }),
        ...others,
      };
    });
  }

  async approve(
    id: string,
    tools?: readonly string[],
    digests?: readonly string[],
  ): Promise<readonly string[]> {
    const view = this.#of(id);
    if (view === undefined) throw viewNotFound(id);
    const names = await view.toolNames();
    const keys = new Map([...names].map(([key, name]) => [name, key]));
    const approved = await this.#deps.approvals.approve(
      id,
      tools?.map((tool) => keys.get(tool) ?? tool),
      digests,
    );
    return approved.map((key) => names.get(key) ?? key);
  }

  problems(id: string): Promise<ViewProblem[]> {
    const view = this.#of(id);
    if (view === undefined) throw viewNotFound(id);
    return view.survey();
  }

  async preview(view: ViewDefinition | string, owner: Owner = ANONYMOUS): Promise<ViewPreview> {
    const shown = typeof view === 'string' ? this.#of(view) : await this.#draft(checkedView(jsonCopy(view)));
    if (shown === undefined) throw viewNotFound(String(view));
    const problems = await shown.survey();
    const client = { owner, profile: GATEWAY_PROFILE };
    const listing = await shown.directory.listing('tools', client);
    const names = listing.items.map(({ name }) => String(name));
    const asks = names.filter((name) => shown.directory.knownTarget(name, owner)?.asks === true);
    const listed = await shown.backends.search?.listed(listing, client);
    return { tools: listed?.items ?? listing.items, asks, problems };
  }

  health(id: string): ReturnType<ServedViews['health']> {
    const { fleet } = this.#deps;
    return this.find(id).definition.from.map(({ template }) => {
      const { total, healthy } = countHealth(
        fleet.templates.has(template) ? fleet.templates.instances(template) : [],
      );
      return { template, total, healthy };
    });
  }

  exchange(id: string, request: ExchangeRequest, options: ExchangeOptions = {}): Observable<SourcedEvent> {
    const view = this.#of(id);
    if (view === undefined) throw viewNotFound(id);
    const owner: Owner = {
      id: ownerIdOf(request),
      ...definedFields({ tools: request.tools }),
    };
    const { instanceId: _, ...others } = options;
    const toTemplate = (template: string, own: ExchangeRequest) =>
      this.#deps.dispatcher.exchange(template, own, others).pipe(map(withAggregateInstance(template)));
    return view.backends.route(request, { owner, profile: GATEWAY_PROFILE }, toTemplate);
  }

  #of(id: string): ServedView | undefined {
    const stored = this.#deps.registry.find(id);
    if (stored === undefined) return undefined;
    const known = this.#served.get(id);
    if (known !== undefined) return known;
    const view = new ServedView(stored, this.#deps, this.#compiledLists);
    this.#served.set(id, view);
    return view;
  }

  async #draft(definition: ViewDefinition): Promise<ServedView> {
    const { id } = definition;
    // Clients may have seen names that are not stored yet.
    const before = this.#served.get(id) ?? this.#deps.registry.find(id);
    const names = await stillOwned(definition, before?.names, this.#deps.aggregate.scheduler);
    return new ServedView({ definition, names, source: 'api', updatedAt: '' }, this.#deps);
  }

  #changed(id: string): void {
    const stored = this.#deps.registry.find(id);
    const view = this.#served.get(id);
    if (stored !== undefined) view?.change(stored);
    else {
      this.#served.delete(id);
      view?.close();
    }
    this.#approveFirst(id);
  }

  /** Approves the first list of a view of a registry file, without a client that asks for it. */
  #approveFirst(id: string): void {
    const isSettling = [...this.#settling].some((definition) => definition.id === id);
    if (isSettling || !this.#deps.approvals.awaitsFirst(id)) return;
    this.problems(id).catch(() => undefined); // it may be gone
  }
}

/** The names that a changed view keeps: two that wanted the same name are named again. */
async function stillOwned(
  definition: ViewDefinition,
  names: NameTargets = NO_NAMES,
  scheduler: TaskScheduler,
): Promise<NameTargets> {
  const view = new CompiledView(definition);
  const kept = { tools: new Map<string, string>(), prompts: new Map<string, string>() };
  for (const list of ['tools', 'prompts'] as const)
    await scheduler.each(
      groupsToMatch(Object.entries(names[list]), ([, target]) => target),
      (group) => {
        for (const [name, target] of group) {
          const at = target.indexOf('/');
          if (at > 0 && view.takes(list, target.slice(0, at), target.slice(at + 1)))
            kept[list].set(name, target);
        }
      },
    );
  return { tools: Object.fromEntries(kept.tools), prompts: Object.fromEntries(kept.prompts) };
}
