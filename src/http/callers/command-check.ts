// Decides which caller may register which command, because this machine runs it. domain/instances/command.ts has the rule for
// callers without the scope `admin`.

import { mayDo, type Principal } from '../../domain/accounts/principal.ts';
import { isRestricted } from '../../domain/accounts/rights.ts';
import { BEHIND_A_PROXY, insufficientPermissions } from '../../domain/errors/account-errors.ts';
import { commandNotAllowed } from '../../domain/errors/registry-errors.ts';
import { commandRefusal, commandWords } from '../../domain/instances/command.ts';
import type { InstanceInput } from '../../domain/instances/instance.ts';
import { runsProgram } from '../../domain/instances/transport-kinds.ts';
import { declaredVariables } from '../records/server-input.ts';
import type { HttpRequest } from '../request.ts';
import type { Services } from '../services.ts';

interface CommandRequest {
  readonly template: string;
  readonly instance: InstanceInput;
  readonly principal: Principal;
  readonly request: Pick<HttpRequest, 'isLocal' | 'headers'>;
}

/**
 * The instance as it may be registered; for a caller without the scope `admin`, or with a list of rights, with its
 * command split into the checked words. Throws COMMAND_NOT_ALLOWED, and INSUFFICIENT_PERMISSIONS for its `force`.
 */
export function checkedCommand(
  { template, instance, principal, request }: CommandRequest,
  { auth, allowedCommands, definitions }: Pick<Services, 'auth' | 'allowedCommands' | 'definitions'>,
): InstanceInput {
  if (!runsProgram(instance)) return instance;
  if (!auth.isEnabled) {
    // Only programs on this machine, not web pages, may start programs.
    if (request.isLocal && request.headers.origin === undefined) return instance;
    throw commandNotAllowed(
      `While authentication is off, commands can be registered only from this machine, and not from a web page. ${BEHIND_A_PROXY}`,
    );
  }
  // A command may do everything that the gateway may: an admin of some templates would get all of them.
  if (mayDo(principal, ['admin']) && !isRestricted(principal)) return instance;
  if (instance.force === true) throw insufficientPermissions(['admin']);
  const split = commandWords(instance);
  const words = 'words' in split ? split.words : []; // never allowed
  const wanted = { words, workingDir: instance.working_dir, env: instance.env_vars };
  const refusal = commandRefusal(wanted, {
    allowed: allowedCommands,
    declaredNames: declaredVariables(definitions.get(template)),
  });
  if (refusal !== undefined) throw commandNotAllowed(refusal);
  const [command = '', ...args] = words;
  return { ...instance, command, args };
}
