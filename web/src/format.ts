// Formats numbers, times and durations for display.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export function count(value: number): string {
  return value < 10_000 ? whole.format(value) : compact.format(value);
}

export function rate(perSecond: number): string {
  return perSecond < 100 ? short.format(perSecond) : count(perSecond);
}

export function milliseconds(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms < 10) return `${short.format(ms)} ms`;
  if (ms < 1_000) return `${whole.format(ms)} ms`;
  return ms < 60_000 ? `${short.format(ms / 1_000)} s` : duration(ms);
}

/** A share as a percentage; a small share is never shown as zero. */
export function percent(part: number, total: number): string {
  if (total === 0) return '–';
  const value = (part / total) * 100;
  return value > 0 && value < 0.1 ? '< 0.1 %' : `${short.format(value)} %`;
}

export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d`;
}

export function clock(at: string | number): string {
  return new Date(at).toLocaleTimeString('en-GB');
}

export function day(at: string): string {
  return new Date(at).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
}

const LONGEST = 4_000;

/** Text of a backend, cut: browsers take a time that grows with the square of its length to break a word into lines. */
export function shortened(text: string, most = LONGEST): string {
  return text.length > most ? `${text.slice(0, most)} …` : text;
}

/** `1 instance`, `2 instances`. */
export function plural(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
}
