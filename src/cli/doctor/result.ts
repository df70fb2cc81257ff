// What a check of `stagedoor doctor` found.

export interface CheckResult {
  readonly status: 'ok' | 'warn' | 'fail';
  readonly text: string;
  /** What to do; null when nothing has to be done, or the text says it. */
  readonly advice: string | null;
}

export function ok(text: string): CheckResult {
  return { status: 'ok', text, advice: null };
}

export function warn(text: string, advice: string | null): CheckResult {
  return { status: 'warn', text, advice };
}

export function fail(text: string, advice: string | null): CheckResult {
  return { status: 'fail', text, advice };
}

/** What the work resolves with, or the error with which it rejects. */
export function attemptAsync<T>(work: () => Promise<T>): Promise<T | Error> {
  return work().catch((error: unknown) => {
    if (error instanceof Error) return error;
    throw error;
  });
}
