// The interface of a program that an engine runs in a container. src/discovery/exec.ts implements it.

import type { ContainerRef } from './instance.ts';

export interface ProgramOutput {
  onOutput(chunk: Buffer): void;
  /** Takes the bytes of standard error. */
  onError(chunk: Buffer): void;
}

export interface ContainerProgram {
  /** Process id on this machine; undefined when the engine is on another machine, or the id is unknown. */
  readonly pid: number | undefined;
  /** The reason of its end, as a clause; by then all its output was passed on. Never rejects. */
  readonly exited: Promise<string>;
  /** Writes to standard input. `done` is called once. Never throws. */
  write(text: string, done: (error?: Error | null) => void): void;
  endInput(): void;
  /** Signals the program and the processes it started, from inside the container. Never rejects. */
  signal(name: 'TERM' | 'KILL'): Promise<void>;
}

/** Starts a program in a container, without a shell. Rejects when it cannot be started. */
export type RunInContainer = (
  container: ContainerRef,
  words: readonly string[],
  output: ProgramOutput,
) => Promise<ContainerProgram>;
