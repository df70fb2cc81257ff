// Keeps the declared tests of one spec file and their outcomes: started, passed, failed, skipped, never run.
// It is written by helpers/suite.ts and read by runner/worker.ts (under the runner) or by the exit guard of suite.ts
// (when a spec file is started by hand). It runs nothing and prints nothing.

/** A test that was skipped on purpose, with the reason of its author. */
export interface SkippedTest {
  readonly suite: string;
  readonly name: string;
  readonly reason: string | undefined;
}

/** A `before`, `after` or `each` hook that threw. uvu itself forgets these errors. */
interface HookFailure {
  readonly suite: string;
  readonly hook: string;
  readonly error: Error;
}

/** One `suite(name)` call. */
interface SuiteRecord {
  readonly name: string;
  /** Tests declared so far, without the skipped ones. */
  declared: number;
  /** Tests declared since the last `.run()`; more than zero at the end means that `.run()` was forgotten. */
  pending: number;
}

/** Everything the suites of this process have declared and done. `reset` starts the next spec file. */
class SuiteRegistry {
  readonly suites: SuiteRecord[] = [];
  readonly skipped: SkippedTest[] = [];
  readonly hookFailures: HookFailure[] = [];
  /** True once the runner reads this registry itself; the exit guard of suite.ts then stays quiet. */
  adopted = false;
  /** Called when a test starts or ends, so that the report of a file that hangs can name the test. */
  onProgress: ((progress: Progress) => void) | undefined;

  /** Drops the records of the previous file. */
  reset(): void {
    this.suites.length = 0;
    this.skipped.length = 0;
    this.hookFailures.length = 0;
  }

  /** Adds a suite and returns its record, to be counted up by the caller. */
  open(name: string): SuiteRecord {
    const record: SuiteRecord = { name, declared: 0, pending: 0 };
    this.suites.push(record);
    return record;
  }

  /** The ways in which this file would pass without testing what it declares, one sentence each; empty if there is none. */
  problems(): string[] {
    const skips = new Set(this.skipped.map((skip) => skip.suite));
    const forgotten = this.suites
      .filter((suite) => suite.pending > 0)
      .map(
        (suite) => `suite "${suite.name}" has ${suite.pending} test(s) that were never run: call test.run()`,
      );
    const empty = this.suites
      .filter((suite) => suite.declared === 0 && !skips.has(suite.name))
      .map((suite) => `suite "${suite.name}" has no test`);
    const hooks = this.hookFailures.map(
      ({ suite, hook, error }) => `${hook} of suite "${suite}" failed: ${error.stack ?? error.message}`,
    );
    return [...forgotten, ...empty, ...hooks];
  }
}

/** A test has started or ended. */
export interface Progress {
  readonly state: 'started' | 'passed' | 'failed';
  readonly suite: string;
  readonly name: string;
}

/** The registry of this process. */
export const registry = new SuiteRegistry();
