// One bar of a run, and whether the history of the run meets it.

export interface Verdict {
  readonly bar: string;
  readonly found: string;
  readonly isMet: boolean;
  /** The first cases that missed it. */
  readonly examples: readonly string[];
}

export function none(bar: string, examples: readonly string[], count = examples.length): Verdict {
  return { bar: `0 ${bar}`, found: String(count), isMet: count === 0, examples: examples.slice(0, 5) };
}

export function seconds(ms: number): string {
  return Number.isFinite(ms) ? `${(ms / 1_000).toFixed(2)} s` : 'never';
}
