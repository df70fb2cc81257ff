// The rows of the report: a suite at one endpoint each, compared with its direct run.

import type { Check } from './checks.ts';
import type { Found } from './children.ts';
import type { Allowance } from './compare.ts';
import type { Endpoint } from './harness.ts';
import { comparedOutcome, directOutcome, type Outcome, type Ran } from './outcome.ts';

/** A suite at a target. */
export interface Row extends Pick<Ran, 'target' | 'suite'> {
  /** Differences from the direct run that are accepted. */
  readonly allowed: readonly Allowance[];
  readonly run: (url: string) => Promise<Found>;
}

export class Rows {
  readonly #direct = new Map<Row['suite'], readonly Check[]>();
  readonly #report: (outcome: Outcome) => void;
  readonly #stop: AbortSignal;

  constructor(report: (outcome: Outcome) => void, stop: AbortSignal) {
    this.#report = report;
    this.#stop = stop;
  }

  /** Runs a suite without a gateway. */
  async runDirect(target: string, suite: Row['suite'], found: Promise<Found>): Promise<void> {
    const ran = { target, suite, ...(await found) };
    this.#direct.set(suite, ran.checks);
    this.#report(directOutcome(ran));
  }

  /** Runs rows at the opened endpoint; rows that do not run have the reason as their problem. Never rejects. */
  async run(rows: readonly Row[], open: () => Promise<Endpoint>): Promise<void> {
    const report = (row: Row, found: Found): void =>
      this.#report(comparedOutcome({ ...row, ...found }, this.#direct.get(row.suite) ?? [], row.allowed));
    let reported = 0;
    try {
      this.#stop.throwIfAborted();
      const endpoint = await open();
      try {
        for (const row of rows) {
          report(row, await row.run(endpoint.url));
          reported += 1;
        }
      } finally {
        await endpoint.close();
      }
    } catch (error) {
      const problems = [error instanceof Error ? error.message : String(error)];
      // All rows ran, and closing the endpoint failed: the last row has the problem.
      for (const row of rows.slice(Math.min(reported, rows.length - 1)))
        report(row, { checks: [], durationMs: 0, problems });
    }
  }
}
