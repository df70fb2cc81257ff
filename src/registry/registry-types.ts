// Input and results of registrations and imports. Types only, because embedding programs see them: registry.ts imports xstate
// indirectly.

import type { LoadBalancerSettings } from '../balancing/policy-schemas.ts';
import type { InstanceDefinition, InstanceInput, InstanceSnapshot } from '../domain/instances/instance.ts';
import type { RegistrationOrigin } from '../domain/instances/registration.ts';
import type { TemplateDefinition } from '../templates/definition.ts';
import type { InProcessHandler } from '../transports/open-options.ts';
import type { RegistryContents } from './registry-file.ts';

export interface RegisterOptions extends RegistrationOrigin {
  /** The function that is the instance: it is neither stored nor restored. */
  readonly handler?: InProcessHandler;
  /** Merged into the settings of the template. */
  readonly loadBalancer?: LoadBalancerSettings;
  /** Longest wait for the instance to become healthy, in ms. Default 0: no wait. If it is not healthy by then, the
   * registration rejects with BACKEND_UNAVAILABLE; the instance stays registered, and the gateway tries again.
   */
  readonly waitMs?: number;
  /** With `waitMs`: resolve also when the instance is not healthy by then; see `state` and `reason`. Default false. */
  readonly mayBeUnhealthy?: boolean;
}

/** An entry of a registry file or of sync. */
export interface RegistryInput {
  readonly template: string;
  readonly written: InstanceInput;
  readonly options: RegisterOptions;
}

/** `state`, `healthy` and `reason` are those at the end of the wait. */
export interface Registration extends Pick<InstanceSnapshot, 'state' | 'healthy' | 'reason'> {
  readonly definition: InstanceDefinition;
  /** True when an instance with the same id existed. */
  readonly replaced: boolean;
}

/** With `isPartial` (default false) no instance is removed for lack of an entry. */
export type FileContents = Pick<RegistryContents, 'templates' | 'entries'> &
  Partial<Pick<RegistryContents, 'isPartial' | 'views'>>;

/** The template definitions that are kept in the store: see DefinitionRegistry. */
export interface StoredDefinitions {
  /** TEMPLATE_NOT_FOUND. */
  get(template: string): TemplateDefinition;
  /** Undefined: none is stored. */
  find(template: string): TemplateDefinition | undefined;
  /** What `put` would store. VALIDATION_ERROR, ENDPOINT_NOT_ALLOWED, COMMAND_NOT_ALLOWED. */
  check(template: string, written: unknown): Promise<TemplateDefinition>;
  /** Resolves with false when it replaced one. Errors of `check`; DUPLICATE_TEMPLATE, REGISTRY_FULL. */
  put(template: string, written: unknown): Promise<boolean>;
  /** TEMPLATE_NOT_FOUND. */
  delete(template: string): Promise<void>;
}
