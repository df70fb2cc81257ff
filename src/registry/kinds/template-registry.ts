// The templates of the registry: their settings and their `auth`, stored first, then in force on this node, then on the
// others.

import type { TemplatePolicy } from '../../balancing/policy.ts';
import type { LoadBalancerChange, LoadBalancerSettings } from '../../balancing/policy-schemas.ts';
import {
  changedTemplate,
  type StoredTemplate,
  type TemplateChange,
} from '../../balancing/stored-template.ts';
import { restOfChange } from '../../domain/errors/gateway-errors.ts';
import type { TemplateAuth } from '../../domain/instances/instance.ts';
import type { Store } from '../../persistence/store.ts';
import type { ActiveRegistry, ActiveRegistryDeps } from '../active-registry.ts';
import { checkedTemplate, checkName } from '../checked-input.ts';
import type { ToolApprovals } from '../pinned/tool-approvals.ts';
import type { RegistryChanges } from '../registry-changes.ts';
import type { ViewRegistry } from './view-registry.ts';

interface TemplateRegistryDeps extends Pick<ActiveRegistryDeps, 'fleet'> {
  readonly approvals: Pick<ToolApprovals, 'isPinned' | 'settle' | 'settled'>;
  readonly store: Pick<Store, 'templates'>;
  readonly active: ActiveRegistry;
  readonly views: Pick<ViewRegistry, 'refuseTemplate'>;
}

/** The part of the registry that creates, changes and deletes templates. */
export class TemplateRegistry {
  readonly #deps: TemplateRegistryDeps;
  readonly #changes: RegistryChanges;

  constructor(deps: TemplateRegistryDeps, changes: RegistryChanges) {
    this.#deps = deps;
    this.#changes = changes;
  }

  /** Creates the template if there is none, and merges these settings into its own. Throws VALIDATION_ERROR. */
  async ensure(template: string, loadBalancer: LoadBalancerSettings, auth?: TemplateAuth): Promise<void> {
    checkName(template);
    const change = checkedTemplate(template, loadBalancer, auth);
    await this.#changes.run(() => this.save(change));
    await this.#deps.approvals.settled(template);
  }

  /**
   * Merges settings into those of a template, replaces its `auth`; null removes one. Throws TEMPLATE_NOT_FOUND,
   * VALIDATION_ERROR.
   */
  async change(
    template: string,
    loadBalancer: LoadBalancerChange,
    auth?: TemplateAuth | null,
  ): Promise<StoredTemplate> {
    const change = checkedTemplate(template, loadBalancer, auth);
    const changed = await this.#changes.run(async () => {
      await this.#changes.reload();
      this.#deps.active.settings(template);
      await this.save(change);
      return this.#deps.active.settings(template);
    });
    await this.#deps.approvals.settled(template);
    return changed;
  }

  /**
   * Deletes a template and its settings. Throws TEMPLATE_NOT_FOUND; VALIDATION_ERROR while it has instances on any node. A
   * template with a definition remains, with the default settings. `admit` throws when the caller may not delete a template
   * of this policy.
   */
  delete(template: string, admit?: (policy: TemplatePolicy) => void): Promise<void> {
    return this.#changes.run(async () => {
      await this.#changes.reload();
      const { fleet, approvals } = this.#deps;
      admit?.(fleet.templates.existingGroup(template).policy);
      this.#deps.active.refuseNonEmpty(template);
      const wasPinned = approvals.isPinned(template);
      if (!this.#changes.advance(await this.#deps.store.templates.delete(template))) {
        // The template was not stored, or another node has just registered an instance in it.
        await this.#changes.reload();
        this.#deps.active.refuseNonEmpty(template);
      }
      this.#deps.active.deleteTemplate(template);
      await restOfChange(approvals.settle(template, wasPinned, []));
    });
  }

  /**
   * A part of a change: merges settings into those of the template, which it creates if there is none. False: they are
   * stored already. After the change `settled` of the approvals is due.
   */
  async save(change: TemplateChange): Promise<boolean> {
    const { name, loadBalancer, auth } = change;
    const isEmpty = Object.keys(loadBalancer).length === 0 && auth === undefined;
    if (isEmpty && this.#deps.active.hasSettings(change)) return false;
    await this.#changes.reload();
    this.#deps.views.refuseTemplate(name); // another node may have just made a view of this name
    if (this.#deps.active.hasSettings(change)) return false;
    const { fleet, approvals } = this.#deps;
    const before = fleet.templates.has(name) ? this.#deps.active.settings(name) : { loadBalancer: {} };
    const wasPinned = approvals.isPinned(name);
    this.#changes.advance(await this.#deps.store.templates.save(change));
    this.#deps.active.applySettings(changedTemplate(before, change));
    const { refs } = fleet.templates.group(name);
    await restOfChange(approvals.settle(name, wasPinned, refs));
    return true;
  }
}
