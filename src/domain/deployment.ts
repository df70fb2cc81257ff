// What sync finds outside of the gateway: containers and pods that serve a template, entries of the registry file; and what
// became of them here.

import type { ContainerRef, InstanceInput } from './instance.ts';

/** Something that runs and can be an instance. */
export interface Deployment {
  readonly template: string;
  /** Id of the instance. */
  readonly id: string;
  /** Name for people: the name of the container or pod. */
  readonly name: string;
  /** How it is reached. A command runs in `container`. */
  readonly input: InstanceInput;
  /** Absent for pods. */
  readonly container?: ContainerRef;
  /** The part of the source that it belongs to. Default: the origin of the listing. */
  readonly origin?: string;
}

/** Something that is marked to be an instance and cannot be one now. */
export interface SkippedDeployment {
  readonly template: string;
  readonly name: string;
  /** A clause: "its health check fails". */
  readonly reason: string;
}

/** Everything that one source has at one time. */
export interface Listing {
  /** Names the source; instances that came from it remember it. At most 96 characters, without `#`; one that ends in `/`
   *  has parts. */
  readonly origin: string;
  readonly deployments: readonly Deployment[];
  readonly skipped: readonly SkippedDeployment[];
}

export interface SyncRules {
  /** Changes nothing; the report lists the changes that a sync would make. Default false. */
  readonly isDryRun?: boolean;
  /** Whether the caller may change instances of a template; others are as if they were not there. Default: all. */
  readonly mayUse?: (template: string) => boolean;
}

export interface SyncOptions extends SyncRules {
  /** Kubernetes namespace, `*` for all. Default: that of the gateway's settings. */
  readonly namespace?: string | undefined;
}

/** One instance in a report. */
export interface SyncedInstance {
  readonly template: string;
  readonly id: string;
  /** Of its container or pod; absent when it is gone, and for entries of the registry file. */
  readonly name?: string;
}

/** What a sync did, or would do. */
export interface SyncReport {
  readonly added: readonly SyncedInstance[];
  readonly changed: readonly SyncedInstance[];
  readonly removed: readonly SyncedInstance[];
  readonly unchanged: readonly SyncedInstance[];
  readonly skipped: readonly SkippedDeployment[];
}

/** A report about all sources and the registry file. */
export interface SyncOutcome extends SyncReport {
  /** Templates whose settings follow the registry file and were others before. */
  readonly settings: readonly string[];
  /** Addresses of sources that answered; the path of the registry file when it could be read. */
  readonly reached: readonly string[];
  /** One line each: unusable deployments and entries, and sources without an answer, whose instances stay unchanged. */
  readonly warnings: readonly string[];
}
