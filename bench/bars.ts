// The bars of the gateway, and whether it reached them. All but the last two compare cases of one run, at 16 connections.

import type { IdleSessions } from './idle-sessions.ts';
import type { PairResult } from './pairs.ts';
import type { Measurement } from './rounds.ts';
import type { Startup } from './startup.ts';

export interface Bar {
  readonly name: string;
  readonly limit: string;
  /** The figure as shown; '-' when it could not be measured. */
  readonly figure: string;
  readonly verdict: 'reached' | 'missed' | 'not measured';
}

const connections = 16;

/** Decimals of a figure by its unit. */
const digits: Readonly<Record<string, number>> = { ' x': 2, ' us': 1, ' kB': 1 };

export function checkBars(
  measurements: readonly Measurement[],
  pairs: readonly PairResult[],
  startup: Startup | undefined,
  sessions: IdleSessions | undefined,
): Bar[] {
  const of = (letter: string): Measurement | undefined =>
    measurements.find(
      (one) => one.letter === letter && one.connections === connections && one.failures === 0,
    );
  const rate = (letter: string) => of(letter)?.requestsPerSecond;
  const cpu = (letter: string) => of(letter)?.cpuMicrosecondsPerCall ?? undefined;
  const idleBytes = startup?.idleResidentBytes ?? undefined;
  return [
    atMost('(c) CPU per call, relative to (b)', 2, ratio(cpu('c'), cpu('b')), ' x'),
    atLeast('(c) throughput, relative to (b)', 0.5, ratio(rate('c'), rate('b')), ' x'),
    atLeast('(d) throughput, relative to (e)', 0.4, ratio(rate('d'), rate('e')), ' x'),
    atMost('(d) CPU per call', 60, cpu('d'), ' us'),
    atMost('(i) CPU per call, legacy session to HTTP', 90, cpu('i'), ' us'),
    atMost('(j) CPU per call, legacy session to stdio', 70, cpu('j'), ' us'),
    atMost('(k) CPU per call, modern client to HTTP', 90, cpu('k'), ' us'),
    atMost('(l) CPU per call, modern client to stdio', 70, cpu('l'), ' us'),
    atLeast('(m) new legacy sessions a second', 3000, rate('m'), ''),
    atLeast('(o) throughput with 50 open consoles, relative to (n)', 0.95, ratio(rate('o'), rate('n')), ' x'),
    atMost('memory of an idle session', 8, kilobytes(sessions?.bytesPerSession), ' kB'),
    ...pairs.map(({ name, cost, limit, failures }) =>
      atMost(`${name}: CPU per call`, limit, failures === 0 ? cost.median : undefined, ' us'),
    ),
    atMost('start to listening, without instances', 600, startup?.startToListeningMs, ' ms'),
    atMost(
      'resident memory at rest',
      160,
      idleBytes === undefined ? undefined : idleBytes / 1024 ** 2,
      ' MB',
    ),
  ];
}

function kilobytes(bytes: number | undefined): number | undefined {
  return bytes === undefined ? undefined : bytes / 1000;
}

function ratio(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one / other;
}

function atMost(name: string, limit: number, figure: number | undefined, unit: string): Bar {
  return bar(name, `<= ${limit}${unit}`, figure, unit, (found) => found <= limit);
}

function atLeast(name: string, limit: number, figure: number | undefined, unit: string): Bar {
  return bar(name, `>= ${limit}${unit}`, figure, unit, (found) => found >= limit);
}

function bar(
  name: string,
  limit: string,
  figure: number | undefined,
  unit: string,
  isGood: (figure: number) => boolean,
): Bar {
  if (figure === undefined) return { name, limit, figure: '-', verdict: 'not measured' };
  const shown = `${figure.toFixed(digits[unit] ?? 0)}${unit}`;
  return { name, limit, figure: shown, verdict: isGood(figure) ? 'reached' : 'missed' };
}
