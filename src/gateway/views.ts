// The views of a gateway: each is served like all templates together, by AggregateBackends with a selection of its own. What a view
// lists depends on its definition and on the lists of its templates; both may change while clients use it.

import { map, type Observable, Subject, Subscription } from 'rxjs';
import type { Dispatcher } from '../actors/calls/dispatcher.ts';
import type { Fleet } from '../actors/fleet.ts';
import { ANONYMOUS } from '../domain/account.ts';
import type { Answer, ExchangeOptions, ExchangeRequest } from '../domain/exchange.ts';
import { countHealth } from '../domain/instance.ts';
import { definedFields } from '../domain/json.ts';
import { type ListChange, type ListField, MODERN_VERSIONS, NOTICED_LISTS } from '../domain/mcp.ts';
import { GATEWAY_INFO } from '../domain/version.ts';
import {
  type CallLimiter,
  type NameOwners,
  NO_NAMES,
  type StoredView,
  type ViewDefinition,
  type ViewProblem,
} from '../domain/view.ts';
import { viewNotFound } from '../domain/view-errors.ts';
import { AggregateBackends, type AggregateOptions } from '../protocol/aggregate/aggregate-backends.ts';
import { withAggregateInstance } from '../protocol/aggregate/aggregate-names.ts';
import type { Selection } from '../protocol/aggregate/selection.ts';
import { CompiledView } from '../protocol/aggregate/view-choices.ts';
import { ViewDirectory } from '../protocol/aggregate/view-directory.ts';
import { countCall } from '../protocol/aggregate/view-limits.ts';
import { viewProblems } from '../protocol/aggregate/view-problems.ts';
import type { Client, Owner } from '../protocol/ports.ts';
import type { ViewRegistry } from '../registry/view-registry.ts';
import type { PartHealth, ServedViews, ViewPreview, ViewRecord } from './gateway-types.ts';

export interface ViewsDeps {
  readonly registry: ViewRegistry;
  readonly fleet: Pick<Fleet, 'has' | 'existingMembers'>;
  readonly dispatcher: Pick<Dispatcher, 'exchange'>;
  readonly aggregate: Omit<AggregateOptions, 'selection'>;
  readonly callLimiter: CallLimiter;
}

/** A caller over HTTP, to which tools are listed as a client of the newest revision gets them. */
const PROFILE = { protocolVersion: MODERN_VERSIONS[0], capabilities: {}, clientInfo: GATEWAY_INFO };

export class Views implements ServedViews {
  readonly #deps: ViewsDeps;
  readonly #served = new Map<string, ServedView>();
  readonly #subscriptions = new Subscription();

  constructor(deps: ViewsDeps) {
    this.#deps = deps;
    const { listChanges$, lists } = deps.aggregate;
    this.#subscriptions.add(deps.registry.changed$.subscribe((id) => this.#changed(id)));
    const note = ({ template }: ListChange) => {
      for (const view of this.#served.values()) view.noteChange(template);
    };
    this.#subscriptions.add(listChanges$.subscribe(note));
    this.#subscriptions.add(lists.late$.subscribe(note));
  }

  close(): void {
    this.#subscriptions.unsubscribe();
  }

  /** True for the name of a view. A template with the same name goes before it. */
  has(id: string): boolean {
    return !this.#deps.fleet.has(id) && this.#deps.registry.find(id) !== undefined;
  }

  /** Sorted by id. */
  list(): StoredView[] {
    return this.#deps.registry.list();
  }

  /** VIEW_NOT_FOUND. */
  find(id: string): StoredView {
    const found = this.#deps.registry.find(id);
    if (found === undefined) throw viewNotFound(id);
    return found;
  }

  /** Undefined when there is no view of this name. */
  backends(id: string): AggregateBackends | undefined {
    return this.#of(id)?.backends;
  }

  /**
   * Stores a view, which replaces the one with its id. DUPLICATE_VIEW, PRECONDITION_FAILED, REGISTRY_FULL,
   * DATABASE_UNAVAILABLE.
   */
  async put(
    definition: ViewDefinition,
    { ifMatch }: { readonly ifMatch?: string | undefined } = {},
  ): Promise<ViewRecord & { readonly isNew: boolean }> {
    const draft = this.#draft(definition);
    await draft.survey();
    const stored = await this.#deps.registry.put(definition, { names: draft.names, ifMatch });
    return { ...stored, problems: await this.problems(definition.id) };
  }

  /** VIEW_NOT_FOUND, PRECONDITION_FAILED, DATABASE_UNAVAILABLE. */
  delete(id: string, ifMatch?: string): Promise<void> {
    return this.#deps.registry.delete(id, ifMatch);
  }

  /** What the lists of its templates show wrong now. VIEW_NOT_FOUND. */
  problems(id: string): Promise<ViewProblem[]> {
    const view = this.#of(id);
    if (view === undefined) throw viewNotFound(id);
    return view.survey();
  }

  /** What a caller would get from this definition, or from a stored view. Stores nothing. VIEW_NOT_FOUND. */
  async preview(view: ViewDefinition | string, owner: Owner = ANONYMOUS): Promise<ViewPreview> {
    const shown = typeof view === 'string' ? this.#of(view) : this.#draft(view);
    if (shown === undefined) throw viewNotFound(String(view));
    const problems = await shown.survey();
    const client = { owner, profile: PROFILE };
    const listing = await shown.directory.listing('tools', client);
    return { tools: shown.backends.search?.listed(listing, client).items ?? listing.items, problems };
  }

  /** Of each template of the view. VIEW_NOT_FOUND. */
  health(id: string): readonly PartHealth[] {
    const { fleet } = this.#deps;
    return this.find(id).definition.from.map(({ template }) => {
      const { total, healthy } = countHealth(fleet.has(template) ? fleet.existingMembers(template) : []);
      return { template, total, healthy };
    });
  }

  /** As Gateway.exchange, by the names of the view. VIEW_NOT_FOUND. */
  exchange(id: string, request: ExchangeRequest, options: ExchangeOptions = {}): Observable<Answer> {
    const view = this.#of(id);
    if (view === undefined) throw viewNotFound(id);
    const owner: Owner = {
      id: request.caller ?? ANONYMOUS.id,
      ...definedFields({ tools: request.tools }),
    };
    const { instanceId: _, ...others } = options;
    const toTemplate = (template: string, own: ExchangeRequest) =>
      this.#deps.dispatcher.exchange(template, own, others).pipe(map(withAggregateInstance(template)));
    return view.backends.route(request, { owner, profile: PROFILE }, toTemplate);
  }

  #of(id: string): ServedView | undefined {
    const stored = this.#deps.registry.find(id);
    if (stored === undefined) return undefined;
    const known = this.#served.get(id);
    if (known !== undefined) return known;
    const view = new ServedView(stored, this.#deps);
    this.#served.set(id, view);
    return view;
  }

  #draft(definition: ViewDefinition): ServedView {
    const before = this.#deps.registry.find(definition.id);
    const names = stillOwned(definition, before?.names);
    return new ServedView({ definition, names, source: 'api', updatedAt: '' }, this.#deps, true);
  }

  #changed(id: string): void {
    const stored = this.#deps.registry.find(id);
    const view = this.#served.get(id);
    if (stored !== undefined) view?.change(stored);
    else {
      this.#served.delete(id);
      view?.close();
    }
  }
}

/** The names that a changed view keeps: two that wanted the same name get it anew. */
function stillOwned(definition: ViewDefinition, names: NameOwners = NO_NAMES): NameOwners {
  const view = new CompiledView(definition);
  const kept = (list: 'tools' | 'prompts') =>
    Object.entries(names[list]).filter(([, owner]) => {
      const at = owner.indexOf('/');
      return at > 0 && view.takes(list, owner.slice(0, at), owner.slice(at + 1));
    });
  return { tools: Object.fromEntries(kept('tools')), prompts: Object.fromEntries(kept('prompts')) };
}

/** One view while it is in use. */
class ServedView {
  readonly directory: ViewDirectory;
  readonly backends: AggregateBackends;
  names: NameOwners;
  readonly #id: string;
  readonly #deps: ViewsDeps;
  readonly #isDraft: boolean;
  readonly #changed$ = new Subject<ListField>();
  #compiled: CompiledView;
  #version = 0;
  #isSaving = false;

  constructor({ definition, names }: StoredView, deps: ViewsDeps, isDraft = false) {
    const { fleet } = deps;
    this.#id = definition.id;
    this.#deps = deps;
    this.#isDraft = isDraft;
    this.#compiled = new CompiledView(definition);
    this.names = names;
    const templates = () => this.#compiled.templates.filter((template) => fleet.has(template));
    this.directory = new ViewDirectory({
      ...{ lists: deps.aggregate.lists, templates },
      view: () => this.#compiled,
      owners: () => this.names,
      claim: (list, owners) => this.#claim(list, owners),
      version: () => this.#version,
    });
    const selection: Selection = {
      ...{ view: this.#id, directory: this.directory, templates, changed$: this.#changed$ },
      includes: (_owner, template) => this.#compiled.templates.includes(template),
      presentation: () => this.#compiled.presentation,
      limitOf: (listed) => this.#compiled.limits.get(listed),
      countCall: (tool, { id: callerId }, most) =>
        countCall(deps.callLimiter, { view: this.#id, tool, callerId, most }),
    };
    this.backends = new AggregateBackends({ ...deps.aggregate, selection });
  }

  noteChange(template: string): void {
    if (this.#compiled.templates.includes(template)) this.#version += 1;
  }

  change({ definition, names }: StoredView): void {
    this.#compiled = new CompiledView(definition);
    this.names = names;
    this.#version += 1;
    for (const list of NOTICED_LISTS) this.#changed$.next(list);
  }

  close(): void {
    this.backends.close('the view was deleted');
  }

  /** Reads all lists, as the gateway itself: names do not depend on the rights of a caller. */
  async survey(): Promise<ViewProblem[]> {
    const client: Client = { owner: ANONYMOUS, profile: PROFILE };
    const [tools, prompts, resources] = await Promise.all([
      this.directory.survey('tools', client),
      this.directory.survey('prompts', client),
      this.directory.survey('resources', client),
    ]);
    const { fleet, registry } = this.#deps;
    return viewProblems(this.#compiled, { tools, prompts, resources }, (name) => {
      if (fleet.has(name)) return 'template';
      return registry.find(name) === undefined ? undefined : 'view';
    });
  }

  #claim(list: 'tools' | 'prompts', owners: NameOwners['tools']): void {
    this.names = { ...this.names, [list]: { ...this.names[list], ...owners } };
    if (this.#isDraft || this.#isSaving) return;
    this.#isSaving = true;
    // What another node stored first counts; it is in force here then.
    const merge = (stored: NameOwners): NameOwners => ({
      tools: { ...this.names.tools, ...stored.tools },
      prompts: { ...this.names.prompts, ...stored.prompts },
    });
    const saved = this.#deps.registry.saveNames(this.#id, merge);
    saved
      .then(() => {
        this.names = merge(this.#deps.registry.find(this.#id)?.names ?? this.names);
      })
      .catch(() => undefined) // the next name that is given is stored with these
      .finally(() => {
        this.#isSaving = false;
      });
  }
}
