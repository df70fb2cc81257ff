// The rows of the report: a suite at one endpoint each, compared with its direct run.

import type { Check } from './checks.ts';
import type { Found } from './children.ts';
import type { Allowance } from './compare.ts';
import { comparedOutcome, directOutcome, type Outcome, type Ran } from './outcome.ts';

/** A suite at a target. */
export interface Row<Opened> extends Pick<Ran, 'target' | 'suite'> {
  /** Differences from the direct run that are accepted. */
  readonly allowed: readonly Allowance[];
  readonly run: (opened: Opened) => Promise<Found>;
}

export class Rows {
  readonly #direct = new Map<Ran['suite'], readonly Check[]>();
  readonly #report: (outcome: Outcome) => void;
  readonly #stop: AbortSignal;

  constructor(report: (outcome: Outcome) => void, stop: AbortSignal) {
    this.#report = report;
    this.#stop = stop;
  }

  /** Runs a suite without a gateway. */
  async runDirect(target: string, suite: Ran['suite'], found: Promise<Found>): Promise<void> {
    const ran = { target, suite, ...(await found) };
    this.#direct.set(suite, ran.checks);
    this.#report(directOutcome(ran));
  }

  /** Runs rows at the opened target; rows that do not run have the reason as their problem. Never rejects. */
  async run<Opened extends { close(): Promise<void> }>(
    rows: readonly Row<Opened>[],
    open: () => Promise<Opened>,
  ): Promise<void> {
    const report = (row: Row<Opened>, found: Found): void =>
      this.#report(comparedOutcome({ ...row, ...found }, this.#direct.get(row.suite) ?? [], row.allowed));
    let reported = 0;
    try {
      this.#stop.throwIfAborted();
      const opened = await open();
      try {
        for (const row of rows) {
          report(row, await row.run(opened));
          reported += 1;
        }
      } finally {
        await opened.close();
      }
    } catch (error) {
      const problems = [error instanceof Error ? error.message : String(error)];
      // All rows ran, and closing the target failed: the last row has the problem.
      for (const row of rows.slice(Math.min(reported, rows.length - 1)))
        report(row, { checks: [], durationMs: 0, problems });
    }
  }
}
