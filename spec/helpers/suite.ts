// The suite of every spec: uvu's suite with a time limit on every test and hook, and skips that give a reason. Forgetting
// `.run()`, a throwing `before` and an empty suite all fail the file. Finding files, starting processes and printing
// results is in spec/run.ts.

import { suite as uvuSuite } from 'uvu';
import { registry } from '../runner/registry.ts';

/** A test or hook body. Its result is awaited; an error fails the test. */
export type Body = () => unknown;

/** Options of one suite. */
export interface SuiteOptions {
  /** The time limit of each test and each hook, in ms. Default 30 000. */
  readonly timeoutMs?: number;
}

/** Declares a hook: `before(...)` runs once per suite, `before.each(...)` around every test. */
export interface Hook {
  (body: Body): void;
  each(body: Body): void;
}

/** Declares tests; a spec file ends with `.run()`. */
export interface Suite {
  (name: string, body: Body): void;
  /** For work in progress: only these tests run. The linter refuses it in the repository. */
  only(name: string, body: Body): void;
  /** Skips a test with a reason. With CI=true a skip without a reason fails the file. */
  skip(name: string, reason: string | Body): void;
  /**
   * Declares tests with a requirement: they run when `condition` is truthy, otherwise they are counted as skipped with
   * the reason.
   * `test.needs(process.env.TEST_MSSQL_URL, 'set TEST_MSSQL_URL')('stores an account', async () => { ... })`
   */
  needs(condition: unknown, reason: string): (name: string, body: Body) => void;
  readonly before: Hook;
  readonly after: Hook;
  /** Passes the declared tests to uvu. Every spec file ends with it. */
  run(): void;
}

type HookKind = 'before' | 'before.each' | 'after' | 'after.each';

const defaultTimeoutMs = 30_000;

// Saved before any spec can simulate the global timers.
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
  /** Hooks that run after tests run in reverse order of declaration, because later ones may use what earlier ones made. */
  const endings: (() => void)[] = [];
  const hook = (kind: HookKind, register: (body: () => Promise<void>) => void) => (body: Body) => {
    const run = async (): Promise<void> => {
      try {
        await withinTime(body, timeoutMs, kind);
      } catch (thrown) {
        const error = asError(thrown);
        if (kind !== 'before.each') registry.hookFailures.push({ suite: name, hook: kind, error });
        // uvu fails the test for a throwing before.each. For a throwing `before` it silently skips the tests, which the
        // registry detects; for a throwing `after` it loses the results, so that error is kept here.
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

/** Awaits the body, or fails after the limit. The timer is referenced, so that the process stays alive until then. */
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

/** Wraps any thrown value in an Error, because uvu loses the failure otherwise. */
function asError(thrown: unknown): Error {
  return thrown instanceof Error
    ? thrown
    : new Error(`threw a value that is not an Error: ${String(thrown)}`);
}

// A spec file started by hand (`node spec/x.spec.ts`) has no runner: uvu sets the exit code, and would set it to 0 in
// the cases that the registry detects.
process.on('exit', () => {
  if (registry.adopted) return;
  const problems = registry.problems();
  if (problems.length === 0) return;
  process.exitCode = 1;
  process.stderr.write(`${problems.map((problem) => `  ${problem}`).join('\n')}\n`);
});
