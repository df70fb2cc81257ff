// What the parts of the benchmark share: the options, the program, the processes that a part starts, and where results go.

import { fileURLToPath } from 'node:url';
import { listening, type Started, startNode } from './children.ts';
import type { Instances, StartedGateway } from './gateway.ts';
import { startGateway, startGuarded } from './gateway.ts';
import type { Installed } from './installed.ts';
import type { LoadResult } from './load.ts';
import type { BenchmarkOptions } from './options.ts';
import { alternating, type Case, load, type Measurement, measurementOf } from './rounds.ts';

export class Bench {
  readonly options: BenchmarkOptions;
  readonly measurements: Measurement[] = [];
  readonly #program: Installed;
  readonly #print: (line: string) => void;
  readonly #running: Pick<Started, 'stop'>[] = [];

  constructor(options: BenchmarkOptions, program: Installed, print: (line: string) => void) {
    this.options = options;
    this.#program = program;
    this.#print = print;
  }

  /** Starts a program of this folder that listens on one port. */
  async server(name: string, ...flags: string[]): Promise<{ pid: number; origin: string }> {
    const { pid, announced } = this.#own(await startNode([pathOf(name), ...flags], listening));
    return { pid, origin: `http://127.0.0.1:${announced[1]}` };
  }

  /** Starts a fast HTTP backend and returns its endpoints. */
  async endpoints(count: number, era = 'legacy'): Promise<string[]> {
    const flags = [`--ports=${count}`, `--era=${era}`];
    const { announced } = this.#own(await startNode([pathOf('backends/http.ts'), ...flags], listening));
    return announced[1]?.split(' ').map((port) => `http://127.0.0.1:${port}/mcp`) ?? [];
  }

  /** A gateway as users start it, with an API key. */
  async guarded(instances: Instances, environment?: Readonly<Record<string, string>>) {
    return this.#own(await startGuarded(instances, this.#program, environment));
  }

  /** A gateway as users start it, which has answered nothing but the questions whether it is ready. */
  async gateway(
    instances: Instances,
    environment?: Readonly<Record<string, string>>,
  ): Promise<StartedGateway> {
    return this.#own(await startGateway(instances, environment, this.#program));
  }

  /** Puts these cases under load, alternately. Returns the results by round, in the order of the cases. */
  async rounds(cases: readonly Case[], rounds: number, connections: number): Promise<LoadResult[][]> {
    const results = cases.map((): LoadResult[] => []);
    for (let round = 1; round <= rounds; round += 1) {
      for (const index of alternating(round, [...cases.keys()])) {
        const one = cases[index];
        if (one !== undefined) results[index]?.push(await this.load(one, connections));
      }
    }
    for (const [index, one] of cases.entries())
      this.measurements.push(measurementOf(one, connections, results[index] ?? []));
    return Array.from({ length: rounds }, (_, round) => results.flatMap((ofCase) => ofCase[round] ?? []));
  }

  /** Puts one case under load once. */
  async load(
    one: Case,
    connections: number,
    seconds = this.options.seconds,
    warmUpSeconds = this.options.warmUpSeconds,
  ) {
    const result = await load(one, { connections, seconds, warmUpSeconds });
    const rate = Math.round(result.requestsPerSecond);
    const cpu = result.cpuMicrosecondsPerCall?.toFixed(1) ?? '-';
    const failures = result.failures === 0 ? '' : `  ${result.failures} FAILED`;
    this.#print(`${connections} connections, ${one.title}: ${rate}/s, ${cpu} us per call${failures}`);
    return result;
  }

  say(line: string): void {
    this.#print(line);
  }

  /** Ends all processes that were started. */
  async stop(): Promise<void> {
    for (const started of this.#running.splice(0).reverse()) await started.stop();
  }

  #own<S extends Pick<Started, 'stop'>>(started: S): S {
    this.#running.push(started);
    return started;
  }
}

export function pathOf(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}
