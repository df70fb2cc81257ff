// What the registry is made of, what goes into a registration and what comes out. Types only; the rest is registry.ts.

import type { Observable } from 'rxjs';
import type { ContainerRef } from '../domain/deployment.ts';
import type { InstanceDefinition, InstanceSnapshot, InstanceSource } from '../domain/instance.ts';
import type { LoadBalancerSettings } from '../domain/template.ts';
import type { RevisionChange } from '../persistence/revision-watch.ts';
import type { Store } from '../persistence/store.ts';
import type { ProtectedPath } from '../templates/command-exposure.ts';
import type { AddressCheck } from '../transports/network-guard.ts';
import type { InProcessHandler } from '../transports/transport.ts';
import type { ActiveRegistryDeps } from './active-registry.ts';

export interface RegisterOptions {
  /** Who registers. Default `api`. */
  readonly source?: InstanceSource;
  /** Hash of the file entry, with source `file`; of what was found, with source `sync`. */
  readonly fingerprint?: string;
  /** Where sync found it: a command runs in there. */
  readonly container?: ContainerRef | undefined;
  /** The function that is the instance: it is neither stored nor restored. */
  readonly handler?: InProcessHandler;
  /** Settings for the template, laid over those it has. */
  readonly loadBalancer?: LoadBalancerSettings;
  /** Who registers may use some templates only: the server id tells nothing of the others. Default false. */
  readonly isLimited?: boolean;
  /** Longest wait for the instance to become healthy, in ms. Default 0. It stays registered when it does not, and its
   *  `state` says so. */
  readonly waitMs?: number;
}

/** `state`, `healthy` and `reason` are of the moment when it resolved: at the end of the wait, if there was one. */
export interface Registration extends Pick<InstanceSnapshot, 'state' | 'healthy' | 'reason'> {
  readonly definition: InstanceDefinition;
  /** True when an instance with the same id was there. */
  readonly replaced: boolean;
}

export interface RegistryDeps extends ActiveRegistryDeps {
  readonly store: Store;
  /** Which addresses no endpoint may name. Default: none. */
  readonly isDenied?: AddressCheck;
  /** What no command may be handed. Default: nothing. */
  readonly protectedPaths?: readonly ProtectedPath[];
  /** News of a store that others write, too. Default: nobody else does. */
  readonly news$?: Observable<RevisionChange> | undefined;
}
