// The outcome of one suite at one target: numbers, differences, and the numbers of passed, failed and skipped scenarios.

import { type Check, count } from './checks.ts';
import type { Found } from './children.ts';
import { type Allowance, applyAllowances, compareChecks, type Difference } from './compare.ts';
import type { ClientSuite, ConformanceSuite, SuiteName } from './suites.ts';

/** One row of the report. */
export interface Outcome {
  readonly target: string;
  readonly suite: SuiteName;
  readonly passed: number;
  readonly failed: number;
  readonly warnings: number;
  readonly durationMs: number;
  /** Scenarios: same as directly; different; different but accepted. */
  readonly scenarios: { readonly same: number; readonly different: number; readonly accepted: number };
  readonly refused: readonly Difference[];
  readonly allowed: readonly Difference[];
  readonly unused: readonly Allowance[];
  /** Problems besides the checks, a line each. */
  readonly problems: readonly string[];
}

/** The parts of an outcome that the run itself gives. */
export interface Ran extends Found {
  readonly target: string;
  readonly suite: ConformanceSuite | ClientSuite;
}

/** The outcome of the direct run: compared with the numbers that the fixture must reach. */
export function directOutcome(ran: Ran): Outcome {
  const { passed, failed } = ran.suite.direct;
  const numbers = numbersOf(ran);
  const isReached = numbers.passed === passed && numbers.failed === failed;
  const missed = `${numbers.passed} passed and ${numbers.failed} failed, but it has to be ${passed} and ${failed}`;
  const all = scenariosOf(ran.checks).size;
  return {
    ...numbers,
    scenarios: { same: isReached ? all : 0, different: isReached ? 0 : Math.max(1, all), accepted: 0 },
    refused: [],
    allowed: [],
    unused: [],
    problems: isReached ? ran.problems : [...ran.problems, missed],
  };
}

/** The outcome behind a gateway: compared with the checks of the direct run. */
export function comparedOutcome(
  ran: Ran,
  direct: readonly Check[],
  allowances: readonly Allowance[],
): Outcome {
  const differences = compareChecks(ran.suite.name, direct, ran.checks);
  const comparison = applyAllowances(ran.suite.name, differences, allowances);
  const different = scenariosOf(comparison.refused);
  const accepted = [...scenariosOf(comparison.allowed)].filter((scenario) => !different.has(scenario));
  const all = scenariosOf([...direct, ...ran.checks]);
  const same = all.size - different.size - accepted.length;
  return {
    ...numbersOf(ran),
    scenarios: { same, different: different.size, accepted: accepted.length },
    ...comparison,
    problems: ran.problems,
  };
}

/** Whether it has neither problems nor unaccepted differences. */
export function isGood({ scenarios, problems }: Outcome): boolean {
  return scenarios.different === 0 && problems.length === 0;
}

/** Totals for the closing line, in scenarios; a problem without a scenario counts as one. */
export function totalOf(outcomes: readonly Outcome[]): { passed: number; failed: number; skipped: number } {
  const totals = { passed: 0, failed: 0, skipped: 0 };
  for (const { scenarios, problems } of outcomes) {
    totals.passed += scenarios.same;
    totals.failed += scenarios.different === 0 && problems.length > 0 ? 1 : scenarios.different;
    totals.skipped += scenarios.accepted;
  }
  return totals;
}

function numbersOf({ target, suite, checks, durationMs }: Ran) {
  return {
    target,
    suite: suite.name,
    passed: count(checks, 'SUCCESS'),
    failed: count(checks, 'FAILURE'),
    warnings: count(checks, 'WARNING'),
    durationMs: Math.round(durationMs),
  };
}

function scenariosOf(checks: readonly { readonly scenario: string }[]): Set<string> {
  return new Set(checks.map(({ scenario }) => scenario));
}
