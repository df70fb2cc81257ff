// Refuses values that no instance and no template definition may name: an address in a denied network, a protected path in a
// command.

import { commandExposes, endpointNotAllowed } from '../domain/errors/registry-errors.ts';
import type { InstanceDefinition } from '../domain/instances/instance.ts';
import { type AddressCheck, deniedAddress } from '../net/network-guard.ts';
import {
  type ExposedProgram,
  type ExposureOptions,
  exposureOf,
  type ProtectedPath,
} from '../templates/command-exposure.ts';

export interface Protection {
  /** Addresses that no endpoint may name. Default: none. */
  readonly isDenied?: AddressCheck | undefined;
  readonly programs?: {
    /** Paths that no command may be given. Default: none. */
    readonly protectedPaths?: readonly ProtectedPath[] | undefined;
    /** The user that programs run as, if it is not that of the gateway. */
    readonly user?: ExposureOptions['user'];
  };
}

/** Throws ENDPOINT_NOT_ALLOWED. Refuses early; the guard of connections also covers host names. */
export function refuseDenied(endpoint: string | undefined, { isDenied }: Protection): void {
  if (endpoint === undefined || isDenied === undefined) return;
  const address = deniedAddress(endpoint, isDenied);
  if (address !== undefined) throw endpointNotAllowed(`The address ${address} lies in a denied network.`);
}

/** Throws COMMAND_NOT_ALLOWED. */
export async function refuseExposing(
  program: ExposedProgram & Pick<InstanceDefinition, 'container'>,
  { programs: { protectedPaths = [], user } = {} }: Protection,
): Promise<void> {
  if (program.container !== undefined) return; // its paths are those of the container
  const exposure = await exposureOf(program, protectedPaths, { user });
  // If the check did not end, the program is accepted, and each attempt to start it checks again.
  if (exposure?.isFound === true) throw commandExposes(exposure.reason);
}
