// The templates of a gateway: one group for each, with its policy. The group of a deleted template is kept while sessions or
// leaving instances use it. The instances in the groups are those of the fleet (fleet.ts).

import { Subject } from 'rxjs';
import type { TemplatePolicy } from '../../balancing/policy.ts';
import { templateNotFound } from '../../domain/errors/registry-errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { type Instance, TemplateGroup, type TemplateGroupDeps } from './template-group.ts';

/** The groups of all templates, which the fleet closes. */
export class TemplateGroups {
  readonly #deps: TemplateGroupDeps;
  readonly #isClosing: () => boolean;
  readonly #toolsChanged: (template: string) => void;
  /** The groups by template. A template that was deleted may be created again. */
  readonly #groups = new Map<string, TemplateGroup>();
  #sorted: readonly string[] | undefined;
  /** Emits the names of deleted templates that are in use. Hot, no replay. */
  readonly deleted$ = new Subject<string>();
  /** Emits the names of deleted templates that are not in use any more. Hot, no replay. */
  readonly forgotten$ = new Subject<string>();

  /**
   * `isClosing`: true once the fleet closes; its groups are closed with it, and no more forgotten. `toolsChanged` is called when
   * the annotations of the tools of a template have changed.
   */
  constructor(deps: TemplateGroupDeps, isClosing: () => boolean, toolsChanged: (template: string) => void) {
    this.#deps = deps;
    this.#isClosing = isClosing;
    this.#toolsChanged = toolsChanged;
  }

  /**
   * The names of the templates, sorted. The same array until a template is added or deleted, since every call at
   * `/mcp` reads it.
   */
  get names(): readonly string[] {
    this.#sorted ??= [...this.#groups.keys()].filter((template) => this.has(template)).sort();
    return this.#sorted;
  }

  /** All groups, those of deleted templates included. */
  get groups(): readonly TemplateGroup[] {
    return [...this.#groups.values()];
  }

  /** True while the template exists: it was added, and not deleted since. */
  has(template: string): boolean {
    return this.#groups.get(template)?.isDeleted === false;
  }

  /** The group of a template, or of a deleted template that is in use; undefined without one. */
  find(template: string): TemplateGroup | undefined {
    return this.#groups.get(template);
  }

  /** The same as `find`, but throws TEMPLATE_NOT_FOUND. */
  group(template: string): TemplateGroup {
    const group = this.#groups.get(template);
    if (group === undefined) throw templateNotFound(template);
    return group;
  }

  /** The same as `group`, but not for deleted templates. Throws TEMPLATE_NOT_FOUND. */
  existingGroup(template: string): TemplateGroup {
    const group = this.group(template);
    if (group.isDeleted) throw templateNotFound(template);
    return group;
  }

  /** The instances of one existing template, or of all. Throws TEMPLATE_NOT_FOUND. */
  instances(template?: string): Instance[] {
    const templates = template === undefined ? this.names : [template];
    return templates.flatMap((name) => this.existingGroup(name).instances);
  }

  /** Keeps the group in use until `release`, which must be called once. As `group` otherwise. */
  acquire(template: string): TemplateGroup {
    const group = this.group(template);
    group.retain();
    return group;
  }

  /** Ends one use of the group; that of a deleted template is forgotten with its last use. */
  release(group: TemplateGroup): void {
    group.release();
    if (group.isUnused) this.#forget(group.template);
  }

  /** True when adding those of the templates that do not exist would exceed LIMITS.templates. */
  isFullFor(...templates: readonly string[]): boolean {
    const { size: added } = new Set(templates.filter((template) => !this.has(template)));
    if (added === 0 || this.#groups.size + added <= LIMITS.templates) return false;
    return this.names.length + added > LIMITS.templates;
  }

  /** Adds the template unless it exists, and sets its policy, also for its instances. */
  setPolicy(template: string, policy: TemplatePolicy): void {
    if (!this.has(template)) this.#sorted = undefined;
    const known = this.#groups.get(template);
    const group = known ?? new TemplateGroup(template, policy, this.#deps);
    if (known === undefined) this.#groups.set(template, group);
    else if (known.setPolicy(policy)) this.#toolsChanged(template);
    // In tasks: an instance may have left by then.
    void this.#deps.scheduler.each(group.refs, (ref) => group.has(ref) && ref.setPolicy(group.policy));
  }

  /** Deletes the template, which must have no instances. Throws TEMPLATE_NOT_FOUND. */
  delete(template: string): void {
    const group = this.group(template);
    group.delete();
    this.#sorted = undefined;
    if (group.isUnused) this.#forget(template);
    else this.deleted$.next(template);
  }

  #forget(template: string): void {
    if (this.#isClosing()) return;
    this.#groups.delete(template);
    this.forgotten$.next(template);
  }
}
