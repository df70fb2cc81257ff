// Input and results of registrations and imports. Types only, because embedding programs see them: registry.ts imports xstate
// indirectly.

import type { LoadBalancerSettings } from '../balancing/policy-schemas.ts';
import type { InstanceDefinition, InstanceSnapshot } from '../domain/instances/instance.ts';
import type { RegistrationOrigin } from '../domain/registration/registration.ts';
import type { InProcessHandler } from '../transports/open-options.ts';
import type { RegistryContents } from './files/registry-file.ts';

export interface RegisterOptions extends RegistrationOrigin {
  /** The function that is the instance: it is neither stored nor restored. */
  readonly handler?: InProcessHandler;
  /**
   * Tags of `If-Match`, the `updatedAt` of a version that was read: PRECONDITION_FAILED when the instance is another one by now,
   * or gone. `*`: any that exists. Default: no condition.
   */
  readonly ifMatch?: string | undefined;
  /** Merged into the settings of the template. */
  readonly loadBalancer?: LoadBalancerSettings;
  /** The longest wait for the instance to become healthy, in ms. Default: 0, no wait. If it is not healthy by then, the
   * registration rejects with BACKEND_UNAVAILABLE; the instance stays registered, and the gateway tries again.
   */
  readonly waitMs?: number;
  /** True: with `waitMs` it also resolves when the instance is not healthy by then; see `state` and `reason`. Default: false. */
  readonly mayBeUnhealthy?: boolean;
}

/** `state`, `healthy` and `reason` are those at the end of the wait. */
export interface Registration extends Pick<InstanceSnapshot, 'state' | 'healthy' | 'reason'> {
  readonly definition: InstanceDefinition;
  /** True when an instance with the same id existed. */
  readonly replaced: boolean;
}

/** The contents of a file. With `isPartial` (default false) no instance is removed for lack of an entry. */
export type FileContents = Pick<RegistryContents, 'templates' | 'entries'> &
  Partial<Pick<RegistryContents, 'isPartial' | 'views'>>;
