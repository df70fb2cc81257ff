// A program that an engine runs in a container, as its clients see it. Running one is src/discovery/exec.ts.

import type { ContainerRef } from './instance.ts';

/** What it writes. */
export interface ProgramOutput {
  onOutput(chunk: Buffer): void;
  /** Of standard error. */
  onError(chunk: Buffer): void;
}

export interface ContainerProgram {
  /** Process id on this machine; undefined when the engine is on another machine, or the id is unknown. */
  readonly pid: number | undefined;
  /** Why it ended, as a clause; by then all its output was handed on. Never rejects. */
  readonly exited: Promise<string>;
  /** Writes to standard input. `done` is called once. Never throws. */
  write(text: string, done: (error?: Error | null) => void): void;
  endInput(): void;
  /** Signals it and what it started, from inside of the container. Never rejects. */
  signal(name: 'TERM' | 'KILL'): Promise<void>;
}

/** Starts a program in a container. Words go to it as they are: there is no shell. Rejects when it cannot be started. */
export type RunInContainer = (
  container: ContainerRef,
  words: readonly string[],
  output: ProgramOutput,
) => Promise<ContainerProgram>;
