// The names of the tools and prompts of a view. When two of them want the same bare name at the time it is assigned, both
// get prefixed names, and keep them. An assigned name stays with its target, which is stored with the view. Source: ADR 232.

import { ownField } from '../../../domain/json/json.ts';
import { itemKey } from '../../../domain/views/approval.ts';
import type { NameTargets, ViewNames } from '../../../domain/views/view.ts';
import { aggregateName, safeName, splitName } from '../aggregate-names.ts';
import type { ChosenItem, CompiledView } from './compiled-view.ts';

/** The most bare names of one list whose targets are remembered. Further targets are made again each time. */
const MAX_NAMES = 10_000;

interface NameRule {
  readonly names: ViewNames;
  readonly length: number;
  /** The targets by bare name. */
  readonly targets: NameTargets['tools'];
  /** True for a bare name that may stand for another tool. Default: none does. */
  readonly isReserved?: ((bare: string) => boolean) | undefined;
}

export interface GivenNames {
  /** The listed name of each item, in their order; no two are equal. */
  readonly listed: readonly string[];
  /** Targets of bare names that had none. */
  readonly newTargets: NameTargets['tools'];
  /** The items that did not get the name that they wish. */
  readonly displaced: readonly ChosenItem[];
}

export function givenNames(items: readonly ChosenItem[], rule: NameRule): GivenNames {
  const newTargets = new Map<string, string>();
  const displaced: ChosenItem[] = [];
  const taken = new Set<string>();
  const isTarget = rule.names === 'bare' ? targetsAmong(items, rule, newTargets) : () => false;
  const wishes = items.map((item) => {
    const wish = rule.names === 'bare' ? bareName(item, rule.length) : prefixedName(item, rule.length);
    const isGiven = rule.names === 'prefixed' || (isTarget(item) && rule.isReserved?.(wish) !== true);
    if (isGiven && !taken.has(wish)) {
      taken.add(wish);
      return wish;
    }
    displaced.push(item);
    return undefined;
  });
  // Made-up names come after all given ones: a given name has priority.
  const listed = items.map((item, index) => {
    const given = wishes[index];
    if (given !== undefined) return given;
    const others = [prefixedName(item, rule.length), safeName(item.template, item.own, '', rule.length)];
    const free = others.find((name) => !taken.has(name)) ?? others[1] ?? '';
    taken.add(free);
    return free;
  });
  return { listed, newTargets: Object.fromEntries(newTargets), displaced };
}

/** Gives each wished name to one item, and notes new targets in `newTargets`. */
function targetsAmong(
  items: readonly ChosenItem[],
  { length, targets }: NameRule,
  newTargets: Map<string, string>,
): (item: ChosenItem) => boolean {
  const chosen = new Map<ChosenItem, boolean>();
  let count = Object.keys(targets).length;
  for (const [name, wishing] of Map.groupBy(items, (item) => bareName(item, length))) {
    const renamed = wishing.filter(({ isRenamed }) => isRenamed);
    const known = ownField(targets, name);
    // A name that the operator wrote goes before all others.
    const [only] =
      renamed.length === 1 ? renamed : wishing.length === 1 && known === undefined ? wishing : [];
    const target = only === undefined ? known : itemKey(only.template, only.own);
    for (const item of wishing) chosen.set(item, itemKey(item.template, item.own) === target);
    if (known !== undefined && known === (target ?? '')) continue;
    if (count >= MAX_NAMES) continue;
    newTargets.set(name, target ?? '');
    count += 1;
  }
  return (item) => chosen.get(item) === true;
}

function bareName({ template, own, wished }: ChosenItem, length: number): string {
  return safeName(template, own, wished, length);
}

function prefixedName({ template, own, wished }: ChosenItem, length: number): string {
  return aggregateName({ template, name: own }, length, wished);
}

/** The prefixed name of an item under the name that its server gave it. */
export function ownPrefixedName({ template, own }: ChosenItem): string {
  return aggregateName({ template, name: own });
}

/** True for a name that begins like those of a template of the view. */
export function isLikePrefixed(name: string, { templates }: CompiledView): boolean {
  const parts = splitName(name);
  return parts !== undefined && templates.includes(parts.template);
}
