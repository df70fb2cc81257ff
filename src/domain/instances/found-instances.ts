// The findings of a sync outside the gateway (containers and pods of templates, entries of the registry file), and its reports.

import type { ContainerRef, InstanceInput } from './instance.ts';

/** A container or pod that can be an instance. */
export interface FoundInstance {
  readonly template: string;
  /** The id of the instance. */
  readonly id: string;
  /** Name for people: the name of the container or pod. */
  readonly name: string;
  /** The definition of the instance. A command runs in `container`. */
  readonly input: InstanceInput;
  /** Absent for pods. */
  readonly container?: ContainerRef;
  /** The part of the source that it belongs to. Default: the origin of the Listing. */
  readonly origin?: string;
}

/** A container or pod, or an entry of the registry file, that cannot be an instance now. */
export interface SkippedInstance {
  readonly template: string;
  readonly name: string;
  /** A clause: "its health check fails". */
  readonly reason: string;
}

/** All instances of one source. */
export interface SourceListing {
  /** The name of the source, which its instances store. At most 96 characters, without `#`; a name that ends in `/` has parts. */
  readonly origin: string;
  readonly found: readonly FoundInstance[];
  readonly skipped: readonly SkippedInstance[];
}

export interface SyncOptions {
  /** True when nothing is changed: the report lists what a sync would change. Default: false. */
  readonly isDryRun?: boolean;
  /** Whether the caller may change instances of a template; those of other templates are ignored. Default: all. */
  readonly mayUse?: (template: string) => boolean;
  /** Kubernetes namespace, `*` for all. Default: that of the gateway's settings. */
  readonly namespace?: string | undefined;
}

/** One instance in a report. */
export interface SyncedInstance {
  readonly template: string;
  readonly id: string;
  /** The name of its container or pod; absent when that is gone, and for entries of the registry file. */
  readonly name?: string;
}

/** The changes of a sync, or those that it would make. */
export interface SyncReport {
  readonly added: readonly SyncedInstance[];
  readonly changed: readonly SyncedInstance[];
  readonly removed: readonly SyncedInstance[];
  readonly unchanged: readonly SyncedInstance[];
  readonly skipped: readonly SkippedInstance[];
}

/** The report about a registry file. */
export interface ImportReport extends SyncReport {
  /** Templates whose settings were changed to those of the file. */
  readonly settings: readonly string[];
}

/** A report about all sources and the registry file. */
export interface SyncOutcome extends ImportReport {
  /** Addresses of sources that answered; the path of the registry file when it could be read. */
  readonly reached: readonly string[];
  /** Findings and entries that cannot be instances, and sources that did not answer, whose instances are unchanged. */
  readonly warnings: readonly string[];
}

export interface ProgramOutput {
  onOutput(chunk: Buffer): void;
  /** Takes the bytes of standard error. */
  onError(chunk: Buffer): void;
}

/** How a program ended. */
export interface ProgramEnd {
  /** A clause: "exited with code 7", "killed by SIGKILL". */
  readonly reason: string;
  /** Absent when it did not exit by itself, or its exit code is unknown. */
  readonly exitCode?: number;
}

export function exitedWith(exitCode: number): ProgramEnd {
  return { reason: `exited with code ${exitCode}`, exitCode };
}

/** A program that an engine runs in a container. src/discovery/exec.ts implements it. */
export interface ContainerProgram {
  /** The process id on this machine; undefined when the engine is on another machine, or the id is unknown. */
  readonly pid: number | undefined;
  /** Resolves when all its output was passed on. Never rejects. */
  readonly exited: Promise<ProgramEnd>;
  /** Writes to standard input. `done` is called once. Never throws. */
  write(text: string, done: (error?: Error | null) => void): void;
  endInput(): void;
  /** Signals the program and the processes it started, from inside the container. Never rejects. */
  signal(name: 'TERM' | 'KILL'): Promise<void>;
}

/**
 * Starts a program in a container, without a shell. Throws when it cannot be started. `signal` ends its
 * connections to the engine.
 */
export type RunInContainer = (
  container: ContainerRef,
  words: readonly string[],
  output: ProgramOutput,
  signal: AbortSignal,
) => Promise<ContainerProgram>;
