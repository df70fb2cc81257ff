// The result of a check of `stagedoor doctor`.

export interface CheckResult {
  readonly status: 'ok' | 'warn' | 'fail';
  readonly text: string;
  /** The action that is needed; null when none is, or the text names it. */
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

/** The result of the work, or the error with which it rejects. */
export function attemptAsync<T>(work: () => Promise<T>): Promise<T | Error> {
  return work().catch((error: unknown) => {
    if (error instanceof Error) return error;
    throw error;
  });
}
