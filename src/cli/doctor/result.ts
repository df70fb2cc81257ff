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
