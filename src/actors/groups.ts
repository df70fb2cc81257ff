// The groups of a fleet, by template, and which templates there are. One that was deleted is not listed any more, but its
// group is kept: sessions, and instances that leave, may outlive it, and it may come back.

import { LIMITS } from '../domain/limits.ts';
import type { BalancerPolicy } from '../domain/policy.ts';
import { templateNotFound } from '../domain/registry-errors.ts';
import { Group, type GroupDeps } from './group.ts';

export class Groups {
  readonly #deps: GroupDeps;
  readonly #byTemplate = new Map<string, Group>();
  readonly #deleted = new Set<string>();

  constructor(deps: GroupDeps) {
    this.#deps = deps;
  }

  /** Names of the templates that are there, sorted. */
  get templates(): string[] {
    return [...this.#byTemplate.keys()].filter((template) => !this.#deleted.has(template)).sort();
  }

  /** Whether the template is there. */
  has(template: string): boolean {
    return this.#byTemplate.has(template) && !this.#deleted.has(template);
  }

  /** TEMPLATE_NOT_FOUND unless the template is there. */
  require(template: string): Group {
    if (this.#deleted.has(template)) throw templateNotFound(template);
    return this.get(template);
  }

  /** True when the name is new, and one more would be one too many. Those that were deleted count, since they are kept. */
  isFullFor(template: string): boolean {
    return !this.#byTemplate.has(template) && this.#byTemplate.size >= LIMITS.templates;
  }

  /** Also of a template that was deleted. TEMPLATE_NOT_FOUND when there never was one of that name. */
  get(template: string): Group {
    const group = this.#byTemplate.get(template);
    if (group === undefined) throw templateNotFound(template);
    return group;
  }

  /** The template is there, and follows `policy`. True when there never was one of that name. */
  govern(template: string, policy: BalancerPolicy): boolean {
    this.#deleted.delete(template);
    const group = this.#byTemplate.get(template);
    if (group === undefined) this.#byTemplate.set(template, new Group(template, policy, this.#deps));
    else group.govern(policy);
    return group === undefined;
  }

  /** The template is there no more, until it is governed again. It is to have no instances. */
  delete(template: string): void {
    this.#deleted.add(template);
  }

  close(): void {
    for (const group of this.#byTemplate.values()) group.close();
  }
}
