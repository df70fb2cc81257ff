// Compares the checks of one run with those of the direct run of the same suite. Everything counts: a warning that appears or
// disappears, an INFO more or less, a scenario that did not run. Order and details (times, ids) do not count.

import type { Check } from './checks.ts';
import type { SuiteName } from './suites.ts';

/** One check with a different outcome. */
export interface Difference {
  readonly suite: SuiteName;
  readonly scenario: string;
  readonly id: string;
  readonly name: string;
  /** The statuses of the direct run: `SUCCESS`, `2 SUCCESS + 1 WARNING`, or `absent`. */
  readonly direct: string;
  /** Those of this run. */
  readonly here: string;
  /** The message of the suite, if any. */
  readonly message: string | undefined;
}

/** A difference that is known and accepted. An omitted field matches anything. */
export interface Allowance {
  readonly suite?: SuiteName;
  readonly scenario: string;
  readonly id?: string;
  /** Where several checks have one id. */
  readonly name?: string;
  /** The statuses of the run behind the gateway. */
  readonly here?: string;
  /** Why no gateway could do better. */
  readonly reason: string;
}

/** The differences of one run, sorted. */
export interface Comparison {
  readonly refused: readonly Difference[];
  readonly allowed: readonly Difference[];
  /** Allowances without a matching difference, although their scenario was compared: they can be removed. */
  readonly unused: readonly Allowance[];
}

/** The differences, in the order of scenarios. */
export function compareChecks(
  suite: SuiteName,
  direct: readonly Check[],
  here: readonly Check[],
): Difference[] {
  const [before, after] = [Map.groupBy(direct, keyOf), Map.groupBy(here, keyOf)];
  const differences = [...new Set([...before.keys(), ...after.keys()])].flatMap((key): Difference[] => {
    const [was, is] = [statusesOf(before.get(key)), statusesOf(after.get(key))];
    if (was === is) return [];
    const [scenario, id, name] = JSON.parse(key);
    const message = after.get(key)?.find((check) => check.message !== undefined)?.message;
    return [{ suite, scenario, id, name, direct: was, here: is, message }];
  });
  return differences.sort((one, other) => one.scenario.localeCompare(other.scenario));
}

/** Sorts differences by whether an allowance covers them. */
export function applyAllowances(
  suite: SuiteName,
  differences: readonly Difference[],
  allowances: readonly Allowance[],
): Comparison {
  const isCovered = (difference: Difference): boolean =>
    allowances.some((allowance) => covers(allowance, difference));
  return {
    refused: differences.filter((difference) => !isCovered(difference)),
    allowed: differences.filter(isCovered),
    unused: allowances
      .filter((allowance) => allowance.suite === suite)
      .filter((allowance) => !differences.some((difference) => covers(allowance, difference))),
  };
}

function covers({ suite, scenario, id, name, here }: Allowance, difference: Difference): boolean {
  return (
    scenario === difference.scenario &&
    (suite === undefined || suite === difference.suite) &&
    (id === undefined || id === difference.id) &&
    (name === undefined || name === difference.name) &&
    (here === undefined || here === difference.here)
  );
}

const keyOf = ({ scenario, id, name }: Check): string => JSON.stringify([scenario, id, name]);

function statusesOf(checks: readonly Check[] = []): string {
  const counts = [...Map.groupBy(checks, ({ status }) => status)]
    .map(([status, some]) => ({ status, count: some.length }))
    .sort((one, other) => one.status.localeCompare(other.status));
  const [first] = counts;
  if (first === undefined) return 'absent';
  if (counts.length === 1 && first.count === 1) return first.status;
  return counts.map(({ status, count }) => `${count} ${status}`).join(' + ');
}
