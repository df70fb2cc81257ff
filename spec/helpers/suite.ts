// The one way to write a spec: uvu's suite with a time limit on every test and hook, skips that carry a reason,
// and nothing that can pass silently. Forgetting `.run()`, a throwing `before` and an empty suite all fail the file.
// It does not find files, start processes or print results: spec/run.ts does.

import { suite as uvuSuite } from 'uvu';
import { registry } from '../runner/registry.ts';

/** A test or hook body. What it returns is awaited; what it throws fails the test. */
export type Body = () => unknown;

/** Options of one suite. */
export interface SuiteOptions {
  /** Longest one test or one hook of this suite may take, in ms. Default 30 000. */
  readonly timeoutMs?: number;
}

/** Declares a hook: `before(...)` runs once per suite, `before.each(...)` around every test. */
export interface Hook {
  (body: Body): void;
  each(body: Body): void;
}

/** Declares tests; ends with `.run()`. */
export interface Suite {
  (name: string, body: Body): void;
  /** For work in progress: only these tests run. The linter refuses it in the repository. */
  only(name: string, body: Body): void;
  /** Sets a test aside and says why. With CI=true a skip that gives no reason fails the file. */
  skip(name: string, reason: string | Body): void;
  /**
   * Declares tests that need something this machine may not have: they run when `condition` is truthy and are
   * counted as skipped, with the reason, when it is not.
   * `test.needs(process.env.TEST_MSSQL_URL, 'set TEST_MSSQL_URL')('stores an account', async () => { ... })`
   */
  needs(condition: unknown, reason: string): (name: string, body: Body) => void;
  readonly before: Hook;
  readonly after: Hook;
  /** Hands the declared tests to uvu. Every spec file ends with it. */
  run(): void;
}

type HookKind = 'before' | 'before.each' | 'after' | 'after.each';

const defaultTimeoutMs = 30_000;

// Taken before any spec can replace the global timers with simulated ones.
const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis;

/** Opens a suite of tests. The name says what is tested: `suite('round robin')`. */
export function suite(name: string, options: SuiteOptions = {}): Suite {
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const inner = uvuSuite(name);
  const record = registry.open(name);

  const declare =
    (register: (name: string, body: () => Promise<void>) => void) => (test: string, body: Body) => {
      record.declared += 1;
      record.pending += 1;
      register(test, async () => {
        registry.onProgress?.({ state: 'started', suite: name, name: test });
        try {
          await withinTime(body, timeoutMs, 'the test');
          registry.onProgress?.({ state: 'passed', suite: name, name: test });
        } catch (thrown) {
          registry.onProgress?.({ state: 'failed', suite: name, name: test });
          throw asError(thrown);
        }
      });
    };
  /** Hooks that end something run in the reverse order of their declaration: what was made first is used to the end. */
  const endings: (() => void)[] = [];
  const hook = (kind: HookKind, register: (body: () => Promise<void>) => void) => (body: Body) => {
    const run = async (): Promise<void> => {
      try {
        await withinTime(body, timeoutMs, kind);
      } catch (thrown) {
        const error = asError(thrown);
        if (kind !== 'before.each') registry.hookFailures.push({ suite: name, hook: kind, error });
        // uvu handles only a throwing before.each well: it fails the test. A throwing `before` makes it skip the tests
        // without a word, which the registry mends; a throwing `after` makes it lose the results, so that one stays here.
        if (kind.startsWith('before')) throw error;
      }
    };
    if (kind.startsWith('before')) register(run);
    else endings.unshift(() => register(run));
  };
  const hooks = (kind: 'before' | 'after'): Hook =>
    Object.assign(hook(kind, inner[kind]), { each: hook(`${kind}.each`, inner[kind].each) });
  const skip = (test: string, reason: string | Body): void => {
    registry.skipped.push({
      suite: name,
      name: test,
      reason: typeof reason === 'string' ? reason : undefined,
    });
    inner.skip(test);
  };
  const test = declare(inner);

  return Object.assign(test, {
    only: declare(inner.only),
    skip,
    needs: (condition: unknown, reason: string) =>
      condition ? test : (skipped: string, _body: Body) => skip(skipped, reason),
    before: hooks('before'),
    after: hooks('after'),
    run: () => {
      record.pending = 0;
      for (const register of endings) register();
      inner.run();
    },
  });
}

/** Awaits the body, or fails after the limit. The timer stays referenced: it also ends a wait that nothing would end. */
async function withinTime(body: Body, timeoutMs: number, what: string): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = startTimer(() => reject(new Error(`${what} took longer than ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([body(), limit]);
  } finally {
    stopTimer(timer);
  }
}

/** uvu forgets the failure when something other than an Error is thrown, so everything becomes one. */
function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(`threw a value that is no Error: ${String(thrown)}`);
}

// A spec file started by hand (`node spec/x.spec.ts`) has no runner above it: uvu then sets the exit code, and would
// set it to 0 in exactly the cases the registry knows about.
process.on('exit', () => {
  if (registry.adopted) return;
  const problems = registry.problems();
  if (problems.length === 0) return;
  process.exitCode = 1;
  process.stderr.write(`${problems.map((problem) => `  ${problem}`).join('\n')}\n`);
});
