// The views of the registry: stored first, then in force on this node, then on the others, like templates and
// instances. It does not know the items of a view (gateway/endpoint/views.ts).

import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Subject } from 'rxjs';
import { restOfChange } from '../../domain/errors/gateway-errors.ts';
import { duplicateView, viewNotFound } from '../../domain/errors/registry-errors.ts';
import type { GatewayEvent, GatewayEvents } from '../../domain/events/events.ts';
import type { Timing } from '../../domain/time/task-scheduler.ts';
import type { NameTargets, StoredView, ViewDefinition } from '../../domain/views/view.ts';
import type { ViewStore } from '../../persistence/store.ts';
import { untilTaken } from '../../persistence/until-taken.ts';
import { refuseOtherVersion } from '../if-match.ts';
import type { ToolApprovals } from '../pinned/tool-approvals.ts';
import { REGISTRY_BOUNDS, refuseOverflow, viewBytes } from '../registry-bounds.ts';
import type { RegistryChanges } from '../registry-changes.ts';

interface ViewRegistryDeps extends Timing {
  readonly store: { readonly views: ViewStore };
  readonly emit: (event: GatewayEvent) => void;
  readonly fleet: { readonly templates: { has(template: string): boolean } };
  /** The approved tools of pinned views. */
  readonly approvals: Pick<ToolApprovals, 'setView' | 'forget'>;
}

/** The condition under which a view may be changed. */
export interface ViewCondition {
  /** See etagOf: PRECONDITION_FAILED for another one. `*`: any that exists. Default: no condition. */
  readonly ifMatch?: string | undefined;
  /**
   * Called with the version that the change replaces, which another node may have just stored; rejects when the caller
   * may not change it. Default: every caller may.
   */
  readonly admit?: ((before: ViewDefinition | undefined) => void | Promise<void>) | undefined;
}

interface ViewPut extends ViewCondition {
  readonly names: NameTargets;
  /** Fingerprint of an entry of the registry file. Default: it comes from the API. */
  readonly fingerprint?: string | undefined;
}

/** The part of the registry that finds, stores and deletes views. */
export class ViewRegistry {
  /** Hot: the id of each view that is new, changed or deleted here; never completes. */
  readonly changed$ = new Subject<string>();
  readonly #deps: ViewRegistryDeps;
  readonly #changes: RegistryChanges;
  readonly #views = new Map<string, StoredView>();
  #bytes = 0;

  constructor(deps: ViewRegistryDeps, changes: RegistryChanges) {
    this.#deps = deps;
    this.#changes = changes;
  }

  /** Throws DUPLICATE_VIEW when a view has the name. */
  refuseTemplate(template: string): void {
    if (this.#views.has(template)) throw duplicateView(template, 'view');
  }

  find(id: string): StoredView | undefined {
    return this.#views.get(id);
  }

  /** All views, in the order of their ids. */
  list(): StoredView[] {
    return [...this.#views.values()].toSorted((a, b) => (a.definition.id < b.definition.id ? -1 : 1));
  }

  /**
   * Stores a view, and puts it in force. Throws DUPLICATE_VIEW for the name of a template, PRECONDITION_FAILED,
   * REGISTRY_FULL; errors of `admit`.
   */
  put(
    definition: ViewDefinition,
    { names, fingerprint, ...condition }: ViewPut,
  ): Promise<{ readonly view: StoredView; readonly isNew: boolean }> {
    const { id } = definition;
    return this.#changing(id, condition, async (before) => {
      // Another node has just imported the same file.
      if (before?.source === 'file' && before.fingerprint === fingerprint)
        return { view: before, isNew: false };
      if (this.#deps.fleet.templates.has(id)) throw duplicateView(id, 'template');
      const count = before === undefined ? 1 : 0;
      const bytes = viewBytes({ definition, names }) - viewBytes(before);
      const held = { count: this.#views.size, bytes: this.#bytes };
      refuseOverflow(REGISTRY_BOUNDS.views, held, { count, bytes });
      const updatedAt = new Date(this.#deps.clock.wall()).toISOString();
      const origin =
        fingerprint === undefined ? { source: 'api' as const } : { source: 'file' as const, fingerprint };
      const view: StoredView = { definition, names, ...origin, updatedAt };
      const revision = await this.#deps.store.views.save(view, before ?? null);
      if (!this.#changes.advance(revision)) return undefined;
      this.#set(view);
      await this.#settle(before?.definition, definition);
      return { view, isNew: before === undefined };
    });
  }

  /**
   * Stores the owners of bare names, as far as nothing else was stored for them meanwhile. Nothing for a view that is gone.
   * Throws DATABASE_UNAVAILABLE.
   */
  async saveNames(id: string, merge: (names: NameTargets) => NameTargets): Promise<void> {
    await this.#changing(id, {}, async (before) => {
      if (before === undefined) return true;
      const view = { ...before, names: merge(before.names) };
      if (isDeepStrictEqual(view, before)) return true;
      if (!this.#changes.advance(await this.#deps.store.views.save(view, before))) return undefined;
      this.#keep(id, view);
      return true;
    });
  }

  /**
   * Deletes a view; one of the registry file leaves a tombstone, so that the next import does not add it again.
   * Throws VIEW_NOT_FOUND, PRECONDITION_FAILED; errors of `admit`.
   */
  async delete(id: string, condition: ViewCondition = {}): Promise<void> {
    await this.#changing(id, condition, async (before) => {
      if (before === undefined) throw viewNotFound(id);
      return this.#delete(before, before.fingerprint);
    });
  }

  /** Deletes a view that its file no longer has, unless another node has done so, or it was made again through the API. */
  async withdraw(id: string): Promise<void> {
    await this.#changing(id, {}, async (before) => {
      return before?.source === 'file' ? this.#delete(before) : true;
    });
  }

  /** Resolves with undefined when the stored view is another one by now. */
  async #delete(view: StoredView, fingerprint?: string): Promise<true | undefined> {
    const { definition } = view;
    if (!this.#changes.advance(await this.#deps.store.views.delete(view, fingerprint))) return undefined;
    this.#remove(definition.id);
    await this.#settle(definition, undefined);
    return true;
  }

  /** Puts stored views in force, in several turns of the event loop. No other change may come between these. */
  async apply(stored: readonly StoredView[]): Promise<void> {
    const ids = new Set(stored.map(({ definition }) => definition.id));
    for (const id of [...this.#views.keys()]) if (!ids.has(id)) this.#remove(id);
    await this.#deps.scheduler.each(stored, (view) => {
      const before = this.#views.get(view.definition.id);
      if (!isDeepStrictEqual(before, view)) this.#set(view);
    });
  }

  /** Tries again when another node changed the view meanwhile; `work` resolves with undefined then. */
  #changing<T extends NonNullable<unknown>>(
    id: string,
    { ifMatch, admit }: ViewCondition,
    work: (before: StoredView | undefined) => Promise<T | undefined>,
  ): Promise<T> {
    return this.#changes.run(async () => {
      await this.#changes.reload();
      return untilTaken(async () => {
        const before = this.#views.get(id);
        await admit?.(before?.definition);
        refuseOtherVersion(['view', id], ifMatch, before && etagOf(before));
        const done = await work(before);
        if (done !== undefined) return done;
        await this.#changes.forceReload(); // a row that was edited by hand has changed without the revision
        return undefined;
      });
    });
  }

  /** Drops the earlier approvals of a view that was pinned or released. */
  async #settle(before: ViewDefinition | undefined, after: ViewDefinition | undefined): Promise<void> {
    const id = after?.id ?? before?.id ?? '';
    if ((before?.approve === 'pinned') === (after?.approve === 'pinned')) return;
    await restOfChange(this.#deps.approvals.forget(id));
  }

  #set(view: StoredView): void {
    const { id } = view.definition;
    const before = this.#views.get(id);
    this.#keep(id, view);
    const isSame = before !== undefined && isDeepStrictEqual(before.definition, view.definition);
    if (isSame) return; // other names, which this node finds out itself
    this.#deps.approvals.setView(id, view.definition);
    this.#emit(id, before === undefined ? 'created' : 'changed');
    this.changed$.next(id);
  }

  #keep(id: string, view: StoredView | undefined): void {
    this.#bytes += viewBytes(view) - viewBytes(this.#views.get(id));
    if (view === undefined) this.#views.delete(id);
    else this.#views.set(id, view);
  }

  #remove(id: string): void {
    this.#keep(id, undefined);
    this.#deps.approvals.setView(id, undefined);
    this.#emit(id, 'deleted');
    this.changed$.next(id);
  }

  #emit(view: string, change: GatewayEvents['view.changed']['change']): void {
    this.#deps.emit({ type: 'view.changed', atMs: this.#deps.clock.wall(), view, change });
  }
}

/** Changes with each change of the definition, also back to an earlier one. */
export function etagOf({ definition, updatedAt }: Pick<StoredView, 'definition' | 'updatedAt'>): string {
  return hash('sha256', `${updatedAt} ${JSON.stringify(definition)}`).slice(0, 16);
}
