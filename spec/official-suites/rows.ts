// The rows of the report: a suite at one endpoint each, compared with its direct run. With `CI=true` up to three rows that differ run
// once more, as files of the specs do; see ADR 213.

import type { Check } from './checks.ts';
import type { Found } from './children.ts';
import type { Allowance } from './compare.ts';
import { comparedOutcome, directOutcome, isGood, type Outcome, type Ran } from './outcome.ts';

/** Rows that run a second time. */
const mostRetries = 3;

/** A suite at a target. */
export interface Row<Opened> extends Pick<Ran, 'target' | 'suite'> {
  /** Differences from the direct run that are accepted. */
  readonly allowed: readonly Allowance[];
  readonly run: (opened: Opened) => Promise<Found>;
}

/** Where outcomes go. */
export interface Reports {
  report(outcome: Outcome): void;
  /** The first outcome of a row that then runs once more. */
  reportFlaky(outcome: Outcome): void;
}

export class Rows {
  readonly #direct = new Map<Ran['suite'], readonly Check[]>();
  readonly #report: (outcome: Outcome) => void;
  readonly #reportFlaky: (outcome: Outcome) => void;
  readonly #stop: AbortSignal;
  #retriesLeft: number;

  constructor({ report, reportFlaky }: Reports, stop: AbortSignal, isRepeating = process.env.CI === 'true') {
    this.#retriesLeft = isRepeating ? mostRetries : 0;
    this.#report = report;
    this.#reportFlaky = reportFlaky;
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
    let reported = 0;
    try {
      this.#stop.throwIfAborted();
      const opened = await open();
      try {
        for (const row of rows) {
          this.#report(await this.#outcomeOf(row, opened));
          reported += 1;
        }
      } finally {
        await opened.close();
      }
    } catch (error) {
      const problems = [error instanceof Error ? error.message : String(error)];
      // All rows ran, and closing the target failed: the last row has the problem.
      for (const row of rows.slice(Math.min(reported, rows.length - 1)))
        this.#report(this.#compared(row, { checks: [], durationMs: 0, problems }));
    }
  }

  async #outcomeOf<Opened>(row: Row<Opened>, opened: Opened): Promise<Outcome> {
    const first = this.#compared(row, await row.run(opened));
    if (isGood(first) || this.#retriesLeft === 0) return first;
    this.#retriesLeft -= 1;
    this.#reportFlaky(first);
    return this.#compared(row, await row.run(opened));
  }

  #compared<Opened>(row: Row<Opened>, found: Found): Outcome {
    return comparedOutcome({ ...row, ...found }, this.#direct.get(row.suite) ?? [], row.allowed);
  }
}
